//! Gauges, which each rendering sets from data in memory, and counters that must exist from the
//! start.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use packhouse_store::now_ms;

use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::tls::Certificate;

use super::{before_rendering, registry};
use crate::App;
use crate::readiness::{PARTS, Status};

const LAST: &str = "packhouse_gc_last_success_timestamp_seconds";
/// Gauge with the start of the newest complete backup.
pub const LAST_BACKUP: &str = "packhouse_backup_last_success_timestamp_seconds";
const RUNS: &str = "packhouse_gc_runs_total";
const HANDSHAKES: &str = "packhouse_tls_handshakes_total";
const ENDS: &str = "packhouse_tls_certificate_end_timestamp_seconds";
/// Gauge with the time of the last import of advisories.
const LAST_ADVISORIES: &str = "packhouse_advisories_last_import_timestamp_seconds";
/// Counter of the certificates ordered by ACME, by outcome.
pub const ORDERS: &str = "packhouse_acme_orders_total";

/// Creates the counters that must exist from the start, and registers the function that sets the
/// gauges.
pub fn register(app: &Arc<App>, hosts: [Arc<RequestMeters>; 2]) {
    metrics::gauge!("packhouse_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    for name in [
        "packhouse_blobs_corrupt_total",
        "packhouse_blobs_repaired_total",
        "packhouse_blobs_collected_total",
        "packhouse_password_hashes_total",
        "packhouse_password_checks_refused_total",
        "packhouse_store_statements_total",
        "packhouse_upstream_throttled_total",
        "packhouse_lease_renewals_total",
        "packhouse_lease_losses_total",
        "packhouse_lease_invalidations_total",
        "packhouse_lease_expiries_waited_total",
    ] {
        metrics::counter!(name).increment(0);
    }
    for outcome in ["ok", "failed"] {
        metrics::counter!(RUNS, "outcome" => outcome).increment(0);
    }
    if app.config.tls.serves_packages() || app.config.tls.serves_api() {
        for outcome in ["ok", "failed", "timeout", "plain", "proof"] {
            metrics::counter!(HANDSHAKES, "outcome" => outcome).increment(0);
        }
    }
    if app.config.tls.acme.is_some() {
        for outcome in ["ok", "failed"] {
            metrics::counter!(ORDERS, "outcome" => outcome).increment(0);
        }
    }
    registry::describe();
    let app = Arc::downgrade(app);
    before_rendering(move || {
        hosts.iter().for_each(|host| host.set_gauges());
        if let Some(app) = Weak::upgrade(&app) {
            set(&app);
        }
    });
}

/// Sets the gauges without waiting, because the watch has already queried the disk and the
/// database.
fn set(app: &App) {
    let report = app.report();
    let truth = |truth: bool| if truth { 1.0 } else { 0.0 };
    metrics::gauge!("packhouse_ready").set(truth(report.status != Status::Unavailable));
    for what in PARTS {
        let is_degraded = report.degraded.iter().any(|problem| problem.what == what);
        metrics::gauge!("packhouse_degraded", "what" => what).set(truth(is_degraded));
    }
    let age = Duration::from_millis(report.age_ms.unwrap_or_default());
    metrics::gauge!("packhouse_readiness_age_seconds").set(age.as_secs_f64());
    let connections = app.store.connections();
    let used = connections.open.saturating_sub(connections.idle);
    metrics::gauge!("packhouse_database_connections", "state" => "used").set(f64::from(used));
    metrics::gauge!("packhouse_database_connections", "state" => "idle").set(f64::from(connections.idle));
    metrics::gauge!("packhouse_database_connections_max").set(f64::from(connections.most));
    metrics::gauge!("packhouse_store_commits_waiting").set(app.store.commits_waiting() as f64);
    let oldest = app.store.oldest_commit().unwrap_or_default();
    metrics::gauge!("packhouse_store_commits_oldest_seconds").set(oldest.as_secs_f64());
    let hashing = app.passwords.now();
    metrics::gauge!("packhouse_password_hashes_running").set(hashing.running as f64);
    metrics::gauge!("packhouse_password_hashes_max").set(hashing.at_once as f64);
    metrics::gauge!("packhouse_password_hashes_waiting").set(hashing.waiting as f64);
    metrics::gauge!("packhouse_password_hashes_waiting_max").set(hashing.most_waiting as f64);
    // The value is 0 before the first import, as for backups.
    let advised = app.advisories.changed_at().unwrap_or_default();
    metrics::gauge!(LAST_ADVISORIES).set(advised as f64 / 1000.0);
    metrics::gauge!("packhouse_read_only").set(truth(*app.live.read_only.get()));
    metrics::gauge!("packhouse_maintenance").set(truth(!app.live.maintenance.get().is_empty()));
    let secured = app.secured();
    for (host, tls) in [("packages", secured.packages), ("api", secured.api)] {
        let served = tls.map(|tls| tls.served());
        if let Some(ends) = served.iter().flat_map(|served| served.iter()).map(Certificate::ends).min() {
            metrics::gauge!(ENDS, "host" => host).set(ends as f64 / 1000.0);
        }
    }
    let current = app.runtime.current();
    metrics::gauge!("packhouse_plugins_awaited").set(current.awaited().len() as f64);
    for plugin in current.plugins() {
        let (running, waiting) = plugin.calls_now();
        let name = || plugin.description().format.clone();
        metrics::gauge!("packhouse_plugin_calls_in_flight", "plugin" => name()).set(running as f64);
        metrics::gauge!("packhouse_plugin_calls_waiting", "plugin" => name()).set(waiting as f64);
        metrics::gauge!("packhouse_plugin_calls_max", "plugin" => name()).set(plugin.concurrency() as f64);
    }
}

/// A running garbage collection. The metrics show it while it runs, and count it when it ends.
pub struct Collection {
    began: Instant,
}

impl Collection {
    /// Marks a collection as running.
    pub fn begin() -> Collection {
        metrics::gauge!("packhouse_gc_running").set(1.0);
        Collection { began: Instant::now() }
    }

    /// Counts the collection as succeeded or failed.
    pub fn end(self, succeeded: bool) {
        metrics::gauge!("packhouse_gc_running").set(0.0);
        metrics::histogram!("packhouse_gc_seconds").record(self.began.elapsed().as_secs_f64());
        metrics::counter!(RUNS, "outcome" => if succeeded { "ok" } else { "failed" }).increment(1);
        if succeeded {
            metrics::gauge!(LAST).set(now_ms() as f64 / 1000.0);
        }
    }
}
