//! Drain time: how long a stopping server still serves requests.

use std::io::IsTerminal as _;
use std::time::Duration;

use crate::{ConfigError, SettingsReader, Source};

impl SettingsReader<'_> {
    /// Returns the configured time. By default, a server at a terminal has no drain time, because
    /// the person who stops it would have to wait.
    pub(crate) fn drain(&self) -> Result<Duration, ConfigError> {
        let is_set = self.settings.get("limits.drain_ms").is_some_and(|set| set.source != Source::Default);
        let drain = self.millis("limits.drain_ms")?;
        let at_terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
        Ok(if is_set || !at_terminal { drain } else { Duration::ZERO })
    }
}
