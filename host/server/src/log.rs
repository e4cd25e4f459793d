//! The log: text where a person reads it, a JSON object a line otherwise, on standard error. No secret is ever given to
//! it: secrets hide themselves, and no header of a request is logged.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts the log. `directives` are those of the setting `log`, as `info` or `info,packhouse_store=debug`.
pub(crate) fn start(directives: &str) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(directives).with_context(|| format!("log: {directives:?} is no log level"))?;
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match std::io::stderr().is_terminal() {
        true => base.try_init(),
        false => base.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))
}
