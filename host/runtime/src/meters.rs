//! Metrics of plugin calls. Each plugin creates its metric handles once, so install the metrics
//! recorder before you load plugins.

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

pub(crate) struct Meters {
    plugin: String,
    functions: Vec<(&'static str, FunctionMeters)>,
    /// Created by the first call that waits.
    waited: OnceLock<Histogram>,
    /// Number of ended calls, and of failed ones among them.
    calls: AtomicU64,
    failures: AtomicU64,
}

struct FunctionMeters {
    ok: Counter,
    /// Created by the first call. Each function adds many lines of metrics, and most plugins never
    /// run some functions.
    measured: OnceLock<Measured>,
}

struct Measured {
    seconds: Histogram,
    memory: Histogram,
}

impl Meters {
    pub(crate) fn new(plugin: &str) -> Meters {
        let meters = |&function: &&'static str| (function, FunctionMeters::new(plugin, function));
        Meters {
            plugin: plugin.to_owned(),
            functions: FUNCTIONS.iter().map(meters).collect(),
            waited: OnceLock::new(),
            calls: AtomicU64::default(),
            failures: AtomicU64::default(),
        }
    }

    /// Records how long a call waited for a slot, whether it got one or not.
    pub(crate) fn waited(&self, time: Duration) {
        let waited = self.waited.get_or_init(|| histogram!(WAITED, "plugin" => self.plugin.clone()));
        waited.record(time.as_secs_f64());
    }

    /// Registers every outcome at 0, so that the first failure appears as an increase.
    pub(crate) fn announce(&self) {
        for function in FUNCTIONS {
            for outcome in CallError::KINDS {
                counter!(CALLS, "plugin" => self.plugin.clone(), "function" => function, "outcome" => outcome).increment(0);
            }
        }
    }

    /// Number of ended calls, and of failed ones among them.
    pub(crate) fn calls(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// Counts an ended call for the portal and API. `failed` means that the plugin or the host is
    /// at fault.
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
