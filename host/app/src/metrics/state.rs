//! What is a state and no event: set when it is asked for, from what is in memory anyway. And what must be there from the start.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use packhouse_store::now_ms;

use packhouse_wire::request_meters::RequestMeters;
use packhouse_wire::tls::Certificate;

use super::before_rendering;
use crate::App;
use crate::readiness::{PARTS, Status};

const LAST: &str = "packhouse_gc_last_success_timestamp_seconds";
/// When the newest whole backup was begun.
pub const LAST_BACKUP: &str = "packhouse_backup_last_success_timestamp_seconds";
const RUNS: &str = "packhouse_gc_runs_total";
const HANDSHAKES: &str = "packhouse_tls_handshakes_total";
const ENDS: &str = "packhouse_tls_certificate_end_timestamp_seconds";
/// When advisories were last brought in.
const LAST_ADVISORIES: &str = "packhouse_advisories_last_import_timestamp_seconds";
/// Certificates that were ordered, by outcome.
pub const ORDERS: &str = "packhouse_acme_orders_total";

/// Makes known what is there before anything happened, and what is set before each rendering.
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
    describe();
    let app = Arc::downgrade(app);
    before_rendering(move || {
        hosts.iter().for_each(|host| host.set_gauges());
        if let Some(app) = Weak::upgrade(&app) {
            set(&app);
        }
    });
}

fn describe() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_gauge!("packhouse_build_info", "1; the version stands in the label");
    describe_gauge!("packhouse_requests_in_flight", "Requests whose answers are not sent to their end");
    describe_gauge!("packhouse_requests_oldest_seconds", Unit::Seconds, "Age of the oldest of them");
    describe_gauge!("packhouse_ready", "1 while anything can be served, as /readyz says");
    describe_gauge!("packhouse_degraded", "1 while this part does not work, as /readyz says");
    describe_gauge!("packhouse_readiness_age_seconds", Unit::Seconds, "Age of what /readyz says");
    describe_gauge!("packhouse_database_connections", "Connections to the database by state");
    describe_gauge!("packhouse_database_connections_max", "As many as there may be");
    describe_gauge!("packhouse_store_commits_waiting", "Commits that wait to be written");
    describe_gauge!(
        "packhouse_store_commits_oldest_seconds",
        Unit::Seconds,
        "Age of the oldest commit that is not durable"
    );
    describe_gauge!("packhouse_password_hashes_running", "Hashes of passwords that are being made");
    describe_gauge!("packhouse_password_hashes_max", "Hashes of passwords that are made at one time");
    describe_gauge!("packhouse_password_hashes_waiting", "Hashes of passwords that wait for their turn");
    describe_gauge!(
        "packhouse_password_hashes_waiting_max",
        "Checks of passwords that may wait; later ones are refused"
    );
    describe_gauge!("packhouse_plugins_awaited", "Components that have to be compiled before they serve");
    describe_gauge!("packhouse_plugin_calls_in_flight", "Calls of a plugin that run");
    describe_gauge!("packhouse_plugin_calls_waiting", "Calls of a plugin that wait for their turn");
    describe_gauge!("packhouse_plugin_calls_max", "Calls of a plugin that can run at one time");
    describe_gauge!("packhouse_disk_available_bytes", Unit::Bytes, "Room on the disk of the data folder");
    describe_gauge!("packhouse_disk_size_bytes", Unit::Bytes, "Size of the disk of the data folder");
    describe_gauge!(LAST, Unit::Seconds, "When garbage was collected to the end, in seconds since 1970");
    describe_gauge!(
        LAST_BACKUP,
        Unit::Seconds,
        "When the newest whole backup was begun, in seconds since 1970; 0 for none"
    );
    describe_gauge!(
        LAST_ADVISORIES,
        Unit::Seconds,
        "When advisories were last brought in, in seconds since 1970; 0 for none"
    );
    describe_counter!(HANDSHAKES, "Handshakes of TLS by outcome");
    describe_counter!(ORDERS, "Certificates ordered by ACME, by outcome");
    describe_gauge!(
        ENDS,
        Unit::Seconds,
        "When the first of the served certificates ends, in seconds since 1970"
    );
    describe_gauge!("packhouse_read_only", "1 while whatever changes packages or accounts is refused");
    describe_gauge!("packhouse_maintenance", "1 while nothing is served but health and metrics");
    describe_counter!(
        "packhouse_rate_limited_total",
        "Requests that were one more than may be, by whose bound"
    );
    describe_gauge!("packhouse_gc_running", "1 while garbage is collected");
    describe_counter!(RUNS, "Collections of garbage by outcome");
    describe_histogram!("packhouse_gc_seconds", Unit::Seconds, "Time that a collection took");
    describe_counter!("packhouse_blobs_corrupt_total", "Reads that found a blob damaged or missing");
    describe_counter!(
        "packhouse_blobs_repaired_total",
        "Damaged or missing blobs whose bytes were sent again"
    );
    describe_counter!("packhouse_webhook_tries_total", "Tries to tell a webhook of an event, by outcome");
    describe_counter!("packhouse_blobs_collected_total", "Blobs that were collected");
    describe_counter!("packhouse_plugin_failures_total", "Requests that a plugin failed, by kind");
    describe_counter!(
        "packhouse_plugin_trial_requests_total",
        "Requests that a component on trial was put to, by outcome"
    );
    describe_gauge!(
        "packhouse_lease_held",
        "1 while look-ups may be answered from memory, as of the last renewal"
    );
    describe_gauge!(
        "packhouse_lease_age_seconds",
        Unit::Seconds,
        "How long the last renewal of the lease took"
    );
    describe_gauge!("packhouse_lease_holders", "Servers that hold a lease");
    describe_counter!("packhouse_upstream_throttled_total", "Answers of upstreams that asked to wait");
    describe_counter!("packhouse_lease_renewals_total", "Renewals of the lease");
    describe_counter!("packhouse_lease_losses_total", "Connections that ended with their lease");
    describe_counter!("packhouse_lease_invalidations_total", "Answers of look-ups that changes made wrong");
    describe_counter!("packhouse_lease_expiries_waited_total", "Commits that waited for the end of a lease");
    describe_counter!("packhouse_lease_notices_total", "Notices of changes, by kind");
    describe_histogram!(
        "packhouse_lease_wait_seconds",
        Unit::Seconds,
        "Time that commits waited for other servers"
    );
    describe_counter!("packhouse_store_statements_total", "Statements that requests put to the database");
    describe_counter!("packhouse_password_hashes_total", "Passwords hashed");
    describe_counter!(
        "packhouse_password_checks_refused_total",
        "Passwords that were not looked at: too many waited"
    );
    describe_histogram!("packhouse_store_batch_commits", "Commits that shared a flush");
}

/// Waits for nothing: what is asked of disk or database was asked by the watch.
fn set(app: &App) {
    let report = app.report();
    let truth = |truth: bool| if truth { 1.0 } else { 0.0 };
    metrics::gauge!("packhouse_ready").set(truth(report.status != Status::Unavailable));
    for what in PARTS {
        let amiss = report.degraded.iter().any(|problem| problem.what == what);
        metrics::gauge!("packhouse_degraded", "what" => what).set(truth(amiss));
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
    // 0 where there are none, as of backups.
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

/// A collection of garbage that runs: seen while it does, counted when it ends.
pub struct Collection {
    began: Instant,
}

impl Collection {
    /// It begins.
    pub fn begin() -> Collection {
        metrics::gauge!("packhouse_gc_running").set(1.0);
        Collection { began: Instant::now() }
    }

    /// It came to its end, or did not.
    pub fn end(self, well: bool) {
        metrics::gauge!("packhouse_gc_running").set(0.0);
        metrics::histogram!("packhouse_gc_seconds").record(self.began.elapsed().as_secs_f64());
        metrics::counter!(RUNS, "outcome" => if well { "ok" } else { "failed" }).increment(1);
        if well {
            metrics::gauge!(LAST).set(now_ms() as f64 / 1000.0);
        }
    }
}
