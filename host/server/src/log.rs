//! The log: text where a person reads it, a JSON object a line otherwise, on standard error. No secret is ever given to
//! it: secrets hide themselves, and no header of a request is logged.

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

/// The target of the lines of requests.
const ACCESS: &str = "packhouse::access";
/// The lines of this process, where they are JSON.
static LINES: OnceLock<Lines<Stderr>> = OnceLock::new();
/// How its filter is changed.
static SET: OnceLock<SetFilter> = OnceLock::new();
/// What hands traces to their collector, if there is one.
static TRACES: OnceLock<SdkTracerProvider> = OnceLock::new();
/// How long the collector has for the last spans.
const FAREWELL: Duration = Duration::from_secs(2);

type SetFilter = Box<dyn Fn(Targets) -> anyhow::Result<()> + Send + Sync>;

/// Starts the log, and traces where settings for them are given. `directives` are those of the setting `log`, as `info` or
/// `info,packhouse_store=debug`.
pub(crate) fn start(directives: &str, traces: Option<&Tracing>) -> anyhow::Result<()> {
    let filter = filter(directives)?;
    let started = match traces {
        // The log's filter is everybody's.
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
            // Set once: a process has one log.
            let _ = TRACES.set(provider);
            // Each filters for itself: what one does not take is made for the other alone.
            tracing_subscriber::registry()
                .with(layer::<Registry>()?.with_filter(filter))
                .with(spans)
                .try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("failed to start the log: {error}"))
}

/// The log, as text or as JSON.
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

/// The lines of this process, which a thread of their own writes.
fn lines() -> anyhow::Result<Lines<Stderr>> {
    let lines = Lines::start(std::io::stderr()).context("failed to start the log's thread")?;
    Ok(LINES.get_or_init(|| lines).clone())
}

/// Logs by other directives from now on.
pub(crate) fn set(directives: &str) -> anyhow::Result<()> {
    let filter = filter(directives)?;
    SET.get().map_or(Ok(()), |set| set(filter))
}

fn filter(directives: &str) -> anyhow::Result<Targets> {
    // A space would be taken for a part of a target.
    let without_spaces: String = without_traces(&quieter(directives)).split_whitespace().collect();
    without_spaces.parse::<Targets>().with_context(|| format!("log: {directives:?} is no log level"))
}

fn keep<S: 'static>(handle: Handle<Targets, S>) {
    let set = move |filter: Targets| handle.reload(filter).context("failed to change the log");
    // A second log cannot be started.
    let _ = SET.set(Box::new(set));
}

/// Writes the lines, and sends the spans, that still wait: the last thing that the program does.
pub(crate) fn finish() {
    if let Some(provider) = TRACES.get() {
        // There is nobody left to tell that the collector is away.
        let _ = provider.shutdown_with_timeout(FAREWELL);
    }
    if let Some(lines) = LINES.get() {
        // There is nowhere to say that the log cannot be written.
        let _ = lines.write_waiting();
    }
}

/// The spans of traces are not the log's: with none wanted, nobody wants them.
fn without_traces(directives: &str) -> String {
    format!("{directives},{TARGET}=off")
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
    use tracing::Level;

    use super::*;

    #[test]
    fn the_library_is_quiet_unless_it_is_asked_for() {
        assert_eq!(quieter("info"), "info,object_store=warn");
        for directives in ["debug", "info,object_store=info", "trace"] {
            assert_eq!(quieter(directives), directives);
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
