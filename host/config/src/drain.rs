//! How long a server that is to stop goes on serving.

use std::io::IsTerminal as _;
use std::time::Duration;

use crate::{Mistake, Reader, Source};

impl Reader<'_> {
    /// As set; by default not at all at a terminal, where the person who stops the server would wait for it.
    pub(crate) fn drain(&self) -> Result<Duration, Mistake> {
        let is_set = self.settings.get("limits.drain_ms").is_some_and(|set| set.source != Source::Default);
        let drain = self.millis("limits.drain_ms")?;
        let at_terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
        Ok(if is_set || !at_terminal { drain } else { Duration::ZERO })
    }
}
