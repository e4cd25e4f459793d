//! What is measured, for Prometheus. Times are histograms, so that those of several servers can be added up; what counts faults is
//! there from the start at 0, so that the first one is seen as an increase; labels come from fixed lists.

mod process;
mod state;

use std::sync::OnceLock;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

pub use state::{Collection, LAST_BACKUP, ORDERS, register};

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
static GAUGES: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// Upper bounds of times, in seconds: from an answer out of memory to an upload over a slow line.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];
/// Upper bounds of a call's memory, in bytes: up to the largest limit that makes sense.
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
/// Upper bounds of how many commits share a flush.
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
    // A second one cannot be: the recorder above is the process's only one.
    let _ = HANDLE.set(handle);
    Ok(())
}

/// What is called before each rendering, to set what is a state and no event. It must not wait for anything.
pub fn before_rendering(set: impl Fn() + Send + Sync + 'static) {
    // Set once: a process serves once.
    let _ = GAUGES.set(Box::new(set));
}

/// All that was measured, as Prometheus' text; nothing of the program's own before [`install`].
pub fn render() -> String {
    if let Some(set) = GAUGES.get() {
        set();
    }
    let measured = HANDLE.get().map(PrometheusHandle::render).unwrap_or_default();
    measured + &process::render()
}

/// Housekeeping of the recorder, to be called now and then: without it, what histograms gather grows.
pub fn upkeep() {
    if let Some(handle) = HANDLE.get() {
        handle.run_upkeep();
    }
}
