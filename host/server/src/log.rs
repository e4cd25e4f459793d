//! The log on standard error: text on a terminal, otherwise one JSON object a line. It never
//! contains a secret: secret types hide their values when they are formatted, and request headers
//! are not logged.

mod access;
mod lines;
mod traces;

use std::io::{IsTerminal, Stderr};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use opentelemetry_sdk::trace::SdkTracerProvider;
use packhouse_config::Tracing;
use packhouse_store::trace::TARGET;
use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{Handle, Layer as Reloadable};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use self::access::JsonLines;
use self::lines::Lines;

/// Log target of request lines.
const ACCESS: &str = "packhouse::access";
/// The writer of the JSON log.
static LINES: OnceLock<Lines<Stderr>> = OnceLock::new();
/// The function that replaces the log's filter.
static SET_FILTER: OnceLock<SetFilter> = OnceLock::new();
/// The exporter that sends traces to the collector, if tracing is configured.
static TRACES: OnceLock<SdkTracerProvider> = OnceLock::new();
/// How long the shutdown waits for the collector to accept the last spans.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

type SetFilter = Box<dyn Fn(Targets) -> anyhow::Result<()> + Send + Sync>;

/// Starts the log, and tracing if it is configured. `directives` is the setting `log`, such as
/// `info` or `info,packhouse_store=debug`.
pub(crate) fn start(directives: &str, traces: Option<&Tracing>) -> anyhow::Result<()> {
    let filter = filter(directives)?;
    let started = match traces {
        // Without tracing, one filter serves the whole subscriber.
        None => {
            let (filter, handle) = Reloadable::new(filter);
            keep(handle);
            tracing_subscriber::registry().with(layer()?).with(filter).try_init()
        }
        Some(settings) => {
            let (filter, handle) = Reloadable::new(filter);
            keep(handle);
            let provider = traces::provider(settings)?;
            let spans = traces::layer(&provider);
            // Cannot fail: the log is started once in a process.
            let _ = TRACES.set(provider);
            // Each layer has its own filter: an event that one layer drops still reaches the other
            // layer.
            tracing_subscriber::registry()
                .with(layer::<Registry>()?.with_filter(filter))
                .with(spans)
                .try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))
}

/// Builds the log's layer, as text or as JSON.
fn layer<S>() -> anyhow::Result<Box<dyn Layer<S> + Send + Sync>>
where
    S: Subscriber + for<'a> LookupSpan<'a> + 'static,
{
    let base = tracing_subscriber::fmt::layer();
    if std::io::stderr().is_terminal() {
        return Ok(base.with_writer(std::io::stderr).boxed());
    }
    Ok(base.with_writer(lines()?).json().flatten_event(true).map_event_format(JsonLines).boxed())
}

/// Returns the writer of the JSON log, whose lines a separate thread writes.
fn lines() -> anyhow::Result<Lines<Stderr>> {
    let lines = Lines::start(std::io::stderr()).context("failed to start the log's thread")?;
    Ok(LINES.get_or_init(|| lines).clone())
}

/// Replaces the filter of the running log.
pub(crate) fn set(directives: &str) -> anyhow::Result<()> {
    let filter = filter(directives)?;
    SET_FILTER.get().map_or(Ok(()), |set| set(filter))
}

fn filter(directives: &str) -> anyhow::Result<Targets> {
    // `Targets` would take a space for part of a target.
    let without_spaces: String =
        without_traces(&limit_storage_library(directives)).split_whitespace().collect();
    without_spaces.parse::<Targets>().with_context(|| format!("log: {directives:?} is not a valid filter"))
}

fn keep<S: 'static>(handle: Handle<Targets, S>) {
    let set = move |filter: Targets| handle.reload(filter).context("failed to change the log");
    // Cannot fail: a second log cannot be started.
    let _ = SET_FILTER.set(Box::new(set));
}

/// Writes the buffered lines and sends the remaining spans. The program calls it last.
pub(crate) fn finish() {
    if let Some(provider) = TRACES.get() {
        // If the collector does not answer now, there is nowhere left to report it.
        let _ = provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
    }
    if let Some(lines) = LINES.get() {
        // If the log cannot be written, there is nowhere to report it.
        let _ = lines.write_waiting();
    }
}

/// Removes the spans of traces from the log.
fn without_traces(directives: &str) -> String {
    format!("{directives},{TARGET}=off")
}

/// Limits the storage library to warnings. At `info` it logs every retry of every request while
/// storage is unavailable, and this program already reports that. A filter that asks for `debug` or
/// `trace`, or names the library, is left alone.
fn limit_storage_library(directives: &str) -> String {
    let wants_all =
        ["debug", "trace", STORAGE_LIBRARY].iter().any(|word| directives.to_ascii_lowercase().contains(word));
    if wants_all { directives.to_owned() } else { format!("{directives},{STORAGE_LIBRARY}=warn") }
}

const STORAGE_LIBRARY: &str = "object_store";

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_storage_library_logs_only_warnings_by_default() {
        assert_eq!(limit_storage_library("info"), "info,object_store=warn");
        for directives in ["debug", "info,object_store=info", "trace"] {
            assert_eq!(limit_storage_library(directives), directives);
        }
    }

    #[test]
    fn levels_are_by_target_and_spaces_do_not_count() {
        let filter = filter("info, packhouse_store = debug,hyper=off").unwrap();
        let logs = |target, level| filter.would_enable(target, &level);
        assert!(logs("packhouse_store::db", Level::DEBUG) && !logs("packhouse_store", Level::TRACE));
        assert!(logs("packhouse_api", Level::INFO) && !logs("packhouse_api", Level::DEBUG));
        assert!(!logs("hyper::client", Level::ERROR) && !logs(TARGET, Level::ERROR));
    }
}
