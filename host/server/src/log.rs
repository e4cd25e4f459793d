//! The log: text where a person reads it, a JSON object a line otherwise, on standard error. No secret is ever given to
//! it: secrets hide themselves, and no header of a request is logged.

mod access;
mod lines;

use std::io::{IsTerminal, Stderr};
use std::sync::OnceLock;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use self::access::JsonLines;
use self::lines::Lines;

/// The target of the lines of requests.
const ACCESS: &str = "packhouse::access";
/// The lines of this process, where they are JSON.
static LINES: OnceLock<Lines<Stderr>> = OnceLock::new();

/// Starts the log. `directives` are those of the setting `log`, as `info` or `info,packhouse_store=debug`.
pub(crate) fn start(directives: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(quieter(directives))
        .with_context(|| format!("log: {directives:?} is no log level"))?;
    let base = tracing_subscriber::fmt().with_env_filter(filter);
    let started = if std::io::stderr().is_terminal() {
        base.with_writer(std::io::stderr).try_init()
    } else {
        let lines = Lines::start(std::io::stderr()).context("failed to start the log's thread")?;
        let lines = LINES.get_or_init(|| lines).clone();
        base.with_writer(lines).json().flatten_event(true).map_event_format(JsonLines).try_init()
    };
    started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))
}

/// Writes the lines that still wait: the last thing that the program does.
pub(crate) fn finish() {
    if let Some(lines) = LINES.get() {
        // There is nowhere to say that the log cannot be written.
        let _ = lines.write_waiting();
    }
}

/// A library that tells of each try of each request at `info` would fill the log while storage is away, of which this program tells
/// itself. Whoever wants to see more than `info`, or names the library, gets it.
fn quieter(directives: &str) -> String {
    let wants_all =
        ["debug", "trace", LIBRARY].iter().any(|word| directives.to_ascii_lowercase().contains(word));
    if wants_all { directives.to_owned() } else { format!("{directives},{LIBRARY}=warn") }
}

const LIBRARY: &str = "object_store";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_quiet_unless_it_is_asked_for() {
        assert_eq!(quieter("info"), "info,object_store=warn");
        for directives in ["debug", "info,object_store=info", "trace"] {
            assert_eq!(quieter(directives), directives);
        }
    }
}
