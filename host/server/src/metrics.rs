//! What is measured, for Prometheus.

use std::sync::OnceLock;

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder of this process.
pub(crate) fn install() -> anyhow::Result<()> {
    let handle =
        PrometheusBuilder::new().install_recorder().context("failed to install the metrics recorder")?;
    // A second one cannot be: the recorder above is the process's only one.
    let _ = HANDLE.set(handle);
    Ok(())
}

/// All that was measured, as Prometheus' text; empty before [`install`].
pub(crate) fn render() -> String {
    HANDLE.get().map(PrometheusHandle::render).unwrap_or_default()
}

/// Housekeeping of the recorder, to be called now and then: without it, what histograms gather grows.
pub(crate) fn upkeep() {
    if let Some(handle) = HANDLE.get() {
        handle.run_upkeep();
    }
}
