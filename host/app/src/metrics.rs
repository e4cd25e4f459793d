//! Metrics for Prometheus. Times are histograms, because the histograms of several servers can be
//! added up. Counters of faults start at 0 when the server starts, so that the first fault is an
//! increase. Values of labels come from fixed lists.

mod process;
mod registry;
mod state;

use std::sync::OnceLock;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

pub use process::PROCESS_METRICS;
pub use registry::{METRICS, Metric, MetricKind};
pub use state::{Collection, LAST_BACKUP, ORDERS, register};

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
static GAUGES: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// Upper bounds of durations, in seconds: from a response from memory to an upload over a slow
/// connection.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];
/// Upper bounds of the memory of one call, in bytes. The last is the largest practical limit.
const BYTES: &[f64] = &[
    262_144.0,
    1_048_576.0,
    2_097_152.0,
    4_194_304.0,
    8_388_608.0,
    16_777_216.0,
    33_554_432.0,
    67_108_864.0,
];
/// Upper bounds of the number of commits that share a flush.
const COMMITS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Installs the recorder of this process.
pub fn install() -> anyhow::Result<()> {
    let bytes = Matcher::Full("packhouse_plugin_memory_bytes".to_owned());
    let commits = Matcher::Full("packhouse_store_batch_commits".to_owned());
    let handle = PrometheusBuilder::new()
        .set_buckets(SECONDS)
        .and_then(|builder| builder.set_buckets_for_metric(bytes, BYTES))
        .and_then(|builder| builder.set_buckets_for_metric(commits, COMMITS))
        .and_then(PrometheusBuilder::install_recorder)
        .context("failed to install the metrics recorder")?;
    // A process has one recorder, so `set` succeeds.
    let _ = HANDLE.set(handle);
    Ok(())
}

/// Registers a function that sets the gauges before each rendering. The function must not wait for
/// anything.
pub fn before_rendering(set: impl Fn() + Send + Sync + 'static) {
    // A process serves only once, so `set` succeeds.
    let _ = GAUGES.set(Box::new(set));
}

/// Renders all metrics in the text format of Prometheus. Before [`install`], these are only the
/// metrics of the process.
pub fn render() -> String {
    if let Some(set) = GAUGES.get() {
        set();
    }
    let measured = HANDLE.get().map(PrometheusHandle::render).unwrap_or_default();
    measured + &process::render()
}

/// Runs the housekeeping of the recorder. Without regular calls, the samples of histograms would
/// pile up.
pub fn upkeep() {
    if let Some(handle) = HANDLE.get() {
        handle.run_upkeep();
    }
}
