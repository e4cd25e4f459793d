//! Metrics of plugin calls. Handles on the usual ones are made once; install the recorder before plugins are loaded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::error::CallError;

const FUNCTIONS: [&str; 5] = ["route", "check", "handle", "delete_version", "mark_version"];
const CALLS: &str = "packhouse_plugin_calls_total";
const SECONDS: &str = "packhouse_plugin_call_seconds";
const MEMORY: &str = "packhouse_plugin_memory_bytes";
const WAITED: &str = "packhouse_plugin_wait_seconds";

/// One plugin's meters.
pub(crate) struct Meters {
    plugin: String,
    functions: Vec<(&'static str, FunctionMeters)>,
    /// Made by the first call that waits.
    waited: OnceLock<Histogram>,
    /// Calls that ended, and those of them that failed.
    calls: AtomicU64,
    failures: AtomicU64,
}

struct FunctionMeters {
    ok: Counter,
    /// Made by the first call: each is many lines of the metrics, and most plugins never have some of the functions called.
    measured: OnceLock<Measured>,
}

struct Measured {
    seconds: Histogram,
    memory: Histogram,
}

impl Meters {
    pub(crate) fn new(plugin: &str) -> Meters {
        metrics::describe_counter!(CALLS, "Calls of plugins by function and outcome");
        metrics::describe_histogram!(SECONDS, metrics::Unit::Seconds, "Time that plugin calls took");
        metrics::describe_histogram!(MEMORY, metrics::Unit::Bytes, "Linear memory of plugin calls");
        metrics::describe_histogram!(
            WAITED,
            metrics::Unit::Seconds,
            "Time that calls waited for a place, of those that had to"
        );
        let meters = |&function: &&'static str| (function, FunctionMeters::new(plugin, function));
        Meters {
            plugin: plugin.to_owned(),
            functions: FUNCTIONS.iter().map(meters).collect(),
            waited: OnceLock::new(),
            calls: AtomicU64::default(),
            failures: AtomicU64::default(),
        }
    }

    /// A call waited this long for a place, whether it got one or not.
    pub(crate) fn waited(&self, time: Duration) {
        let waited = self.waited.get_or_init(|| histogram!(WAITED, "plugin" => self.plugin.clone()));
        waited.record(time.as_secs_f64());
    }

    /// Makes every outcome known at 0, so that the first failure is seen as an increase.
    pub(crate) fn announce(&self) {
        for function in FUNCTIONS {
            for outcome in CallError::KINDS {
                counter!(CALLS, "plugin" => self.plugin.clone(), "function" => function, "outcome" => outcome).increment(0);
            }
        }
    }

    /// How many calls ended, and how many of them failed.
    pub(crate) fn calls(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// That a call ended, for people; `failed` where it is the plugin's or the host's fault.
    pub(crate) fn ended(&self, failed: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failures.fetch_add(u64::from(failed), Ordering::Relaxed);
    }

    pub(crate) fn count(
        &self,
        function: &'static str,
        outcome: &'static str,
        spent: Duration,
        memory: usize,
    ) {
        let known = self.functions.iter().find(|(name, _)| *name == function);
        match known {
            Some((_, meters)) if outcome == "ok" => meters.ok.increment(1),
            _ => {
                counter!(CALLS, "plugin" => self.plugin.clone(), "function" => function, "outcome" => outcome).increment(1);
            }
        }
        if let Some((_, meters)) = known {
            let measured = meters.measured.get_or_init(|| Measured::new(&self.plugin, function));
            measured.seconds.record(spent.as_secs_f64());
            measured.memory.record(memory as f64);
        }
    }
}

impl FunctionMeters {
    fn new(plugin: &str, function: &'static str) -> FunctionMeters {
        let ok = counter!(CALLS, "plugin" => plugin.to_owned(), "function" => function, "outcome" => "ok");
        FunctionMeters { ok, measured: OnceLock::new() }
    }
}

impl Measured {
    fn new(plugin: &str, function: &'static str) -> Measured {
        let plugin = plugin.to_owned();
        Measured {
            seconds: histogram!(SECONDS, "plugin" => plugin.clone(), "function" => function),
            memory: histogram!(MEMORY, "plugin" => plugin, "function" => function),
        }
    }
}
