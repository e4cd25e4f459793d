//! Registry of all metrics: name, kind, labels and help text. `/metrics` contains the help texts.
//! This table is also the source of docs/reference/metrics.md.

use metrics::Unit;

/// Kind of a metric, as Prometheus names it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// A value that only increases.
    Counter,
    /// A value that increases and decreases.
    Gauge,
    /// A distribution, with `_bucket`, `_sum` and `_count`.
    Histogram,
}

impl MetricKind {
    /// Returns the kind's name in Prometheus' text format.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    /// Unit of the value, if it has one.
    pub unit: Option<Unit>,
    /// Each label with a description of its values. The description is empty if the label's name
    /// says enough.
    pub labels: &'static [(&'static str, &'static str)],
    pub help: &'static str,
}

type Labels = &'static [(&'static str, &'static str)];

const fn row(
    name: &'static str,
    kind: MetricKind,
    unit: Option<Unit>,
    labels: Labels,
    help: &'static str,
) -> Metric {
    Metric { name, kind, unit, labels, help }
}

const fn counter(name: &'static str, labels: Labels, help: &'static str) -> Metric {
    row(name, MetricKind::Counter, None, labels, help)
}

const fn gauge(name: &'static str, labels: Labels, help: &'static str) -> Metric {
    row(name, MetricKind::Gauge, None, labels, help)
}

const fn gauge_of(unit: Unit, name: &'static str, labels: Labels, help: &'static str) -> Metric {
    row(name, MetricKind::Gauge, Some(unit), labels, help)
}

const fn seconds(name: &'static str, labels: Labels, help: &'static str) -> Metric {
    row(name, MetricKind::Histogram, Some(Unit::Seconds), labels, help)
}

const OK_FAILED: (&str, &str) = ("outcome", "`ok`, `failed`");
const PLUGIN: (&str, &str) = ("plugin", "");
const PURPOSE: (&str, &str) = ("purpose", "`read`, `write`, `commit`");
const HOST: (&str, &str) = ("host", "`packages`, `api`, and `redirect` if that listener is on");
const METHOD: (&str, &str) = ("method", "`other` for an unusual one");
const ROUTE: Labels = &[("route", ""), ("method", ""), ("status", "")];

/// Metrics of this program, by subject. The module `process` contains the metrics of the process
/// itself.
pub static METRICS: &[Metric] = &[
    gauge("packhouse_build_info", &[("version", "")], "Always 1; the label has the version."),
    // Requests and connections.
    counter(
        "packhouse_requests_total",
        &[HOST, ("format", "a loaded one, else `none`"), METHOD, ("status", "`2xx` and so on")],
        "Requests by host, format, method and class of status.",
    ),
    seconds(
        "packhouse_request_seconds",
        &[HOST, ("format", "a loaded one, else `none`"), METHOD],
        "Time from a request to the head of its response.",
    ),
    gauge("packhouse_requests_in_flight", &[HOST], "Requests whose response is not yet sent completely."),
    gauge_of(
        Unit::Seconds,
        "packhouse_requests_oldest_seconds",
        &[HOST],
        "Age of the oldest request in flight; a high value means that something hangs.",
    ),
    counter("packhouse_api_calls_total", ROUTE, "Calls of the management API by route and status."),
    counter(
        "packhouse_portal_pages_total",
        ROUTE,
        "Pages of the portal, its style sheet and its script, by route and status.",
    ),
    counter(
        "packhouse_rate_limited_total",
        &[("of", "`organization`, `credential`")],
        "Requests refused because they exceeded a configured rate.",
    ),
    counter(
        "packhouse_connections_refused_total",
        &[],
        "Connections closed because one address exceeded its share.",
    ),
    counter("packhouse_streams_given_up_total", &[], "HTTP/2 streams reset because the client read nothing."),
    counter(
        "packhouse_answers_spilled_total",
        &[],
        "Responses that waited for their client in a file because memory had no room. Many of them mean slow clients.",
    ),
    counter(
        "packhouse_tls_handshakes_total",
        &[(
            "outcome",
            "`ok`, `failed`, `timeout`, `plain` (plain HTTP was sent), `proof` (an ACME authority connected)",
        )],
        "TLS handshakes by outcome. Many failed ones mean clients that do not trust the certificate.",
    ),
    gauge_of(
        Unit::Seconds,
        "packhouse_tls_certificate_end_timestamp_seconds",
        &[("host", "`packages`, `api`")],
        "Earliest expiry of the served certificates, in seconds since 1970.",
    ),
    counter("packhouse_acme_orders_total", &[OK_FAILED], "Certificates ordered by ACME, by outcome."),
    // State of the server.
    gauge("packhouse_ready", &[], "1 while the server can serve requests, as in /readyz."),
    gauge(
        "packhouse_degraded",
        &[("what", "the part, as in /readyz")],
        "1 while this part does not work, as in /readyz.",
    ),
    gauge_of(Unit::Seconds, "packhouse_readiness_age_seconds", &[], "Age of the result in /readyz."),
    gauge("packhouse_read_only", &[], "1 while changes of packages and accounts are refused."),
    gauge("packhouse_maintenance", &[], "1 while only health and metrics are served."),
    counter(
        "packhouse_job_runs_total",
        &[("job", "as in `GET /v1/jobs`"), OK_FAILED],
        "Runs of background jobs, by outcome.",
    ),
    seconds(
        "packhouse_job_seconds",
        &[("job", "as in `GET /v1/jobs`")],
        "Duration of the runs of background jobs.",
    ),
    // Plugins and policies.
    gauge(
        "packhouse_plugins_awaited",
        &[],
        "Components that must be compiled before they serve; 0 once the start has ended.",
    ),
    counter(
        "packhouse_plugin_failures_total",
        &[PLUGIN, ("kind", "")],
        "Requests that failed in a plugin: it trapped, exceeded its time, memory or handles, or returned an invalid response.",
    ),
    counter(
        "packhouse_plugin_calls_total",
        &[PLUGIN, ("function", ""), ("outcome", "`ok`, or the kind of failure")],
        "Calls of plugins by function and outcome.",
    ),
    seconds("packhouse_plugin_call_seconds", &[PLUGIN, ("function", "")], "Duration of plugin calls."),
    row(
        "packhouse_plugin_memory_bytes",
        MetricKind::Histogram,
        Some(Unit::Bytes),
        &[PLUGIN, ("function", "")],
        "Linear memory of plugin calls.",
    ),
    gauge("packhouse_plugin_calls_in_flight", &[PLUGIN], "Calls of a plugin that are running."),
    gauge("packhouse_plugin_calls_waiting", &[PLUGIN], "Calls of a plugin that wait for a free instance."),
    gauge("packhouse_plugin_calls_max", &[PLUGIN], "Limit of calls of a plugin that run at one time."),
    seconds("packhouse_plugin_wait_seconds", &[PLUGIN], "Time that calls waited, of those that had to wait."),
    counter(
        "packhouse_policy_rulings_total",
        &[("ruling", "`warn`, `held`, `denied`, `unavailable`")],
        "Rulings of policies. `unavailable` means that a component failed and its versions were refused; the policy shows the error.",
    ),
    counter(
        "packhouse_cache_lookups_total",
        &[("cache", "`responses`, `encodings`"), ("result", "`hit`, `stale` (a source has changed), `miss`")],
        "Look-ups of caches. A hit is served without a plugin call.",
    ),
    counter(
        "packhouse_readmes_as_text_total",
        &[],
        "READMEs that the portal showed as plain text because it was rendering too many.",
    ),
    // Blobs, database and commits.
    counter(
        "packhouse_blobs_corrupt_total",
        &[],
        "Reads that found stored bytes missing or damaged. Run `packhouse scrub` if it increases.",
    ),
    counter(
        "packhouse_blobs_repaired_total",
        &[],
        "Missing or damaged blobs whose bytes a client sent again.",
    ),
    counter("packhouse_blobs_collected_total", &[], "Blobs removed by garbage collection."),
    counter(
        "packhouse_blobs_redirected_total",
        &[],
        "Responses that redirected a client to S3 for the file.",
    ),
    counter(
        "packhouse_s3_requests_total",
        &[("method", ""), ("status", "`2xx` and so on, `none` without a response")],
        "Requests to S3.",
    ),
    seconds("packhouse_s3_request_seconds", &[("method", "")], "Time to the head of a response from S3."),
    counter("packhouse_s3_retries_total", &[], "Requests to S3 that repeated a failed one."),
    gauge(
        "packhouse_database_connections",
        &[("state", "`used`, `idle`")],
        "Connections to the database by state. A problem if all are in use.",
    ),
    gauge("packhouse_database_connections_max", &[], "Limit of connections to the database."),
    counter(
        "packhouse_database_connects_total",
        &[PURPOSE],
        "Connections made to PostgreSQL. Many mean that they break.",
    ),
    seconds("packhouse_database_statement_seconds", &[PURPOSE], "Duration of statements in PostgreSQL."),
    seconds(
        "packhouse_database_wait_seconds",
        &[PURPOSE],
        "Time that work waited for a connection to PostgreSQL, of the work that had to wait.",
    ),
    counter(
        "packhouse_store_statements_total",
        &[],
        "Statements that requests sent to the database. Reads send none while nothing is written; on PostgreSQL this needs a lease.",
    ),
    gauge("packhouse_store_commits_waiting", &[], "Commits that wait to be written."),
    gauge_of(
        Unit::Seconds,
        "packhouse_store_commits_oldest_seconds",
        &[],
        "Age of the oldest commit without a result, whether a disk, the database or a lock of another server delays it.",
    ),
    seconds("packhouse_store_commit_wait_seconds", &[], "Time that commits waited for the writer."),
    seconds("packhouse_store_commit_seconds", &[], "Duration of commits, including the wait."),
    row(
        "packhouse_store_batch_commits",
        MetricKind::Histogram,
        None,
        &[],
        "Commits that shared one flush of the disk.",
    ),
    gauge_of(
        Unit::Bytes,
        "packhouse_disk_available_bytes",
        &[],
        "Free space on the disk of the data folder at the last check.",
    ),
    gauge_of(
        Unit::Bytes,
        "packhouse_disk_size_bytes",
        &[],
        "Size of the disk of the data folder at the last check.",
    ),
    // Work in the background.
    gauge_of(
        Unit::Seconds,
        "packhouse_gc_last_success_timestamp_seconds",
        &[],
        "End of the last complete garbage collection, in seconds since 1970.",
    ),
    counter("packhouse_gc_runs_total", &[OK_FAILED], "Garbage collections by outcome."),
    seconds("packhouse_gc_seconds", &[], "Duration of garbage collections."),
    gauge("packhouse_gc_running", &[], "1 while garbage collection runs."),
    gauge_of(
        Unit::Seconds,
        "packhouse_backup_last_success_timestamp_seconds",
        &[],
        "Start of the newest complete backup, in seconds since 1970; 0 before the first one. Later changes would be lost.",
    ),
    gauge_of(
        Unit::Seconds,
        "packhouse_advisories_last_import_timestamp_seconds",
        &[],
        "Last import of advisories, in seconds since 1970; 0 before the first one. Later findings are unknown.",
    ),
    counter(
        "packhouse_webhook_tries_total",
        &[("outcome", "`delivered`, `failed`")],
        "Attempts to deliver an event to a webhook, by outcome.",
    ),
    // Leases among the servers that share one PostgreSQL database. These metrics are 0 with SQLite.
    gauge(
        "packhouse_lease_held",
        &[],
        "1 while look-ups may be answered from memory, as of the last renewal of the lease; 0 with SQLite.",
    ),
    gauge_of(
        Unit::Seconds,
        "packhouse_lease_age_seconds",
        &[],
        "Duration of the last renewal of the lease: so much of the lease had passed when it began.",
    ),
    gauge("packhouse_lease_holders", &[], "Servers that hold a lease, including this one."),
    counter("packhouse_lease_renewals_total", &[], "Renewals of the lease."),
    counter("packhouse_lease_losses_total", &[], "Connections that ended together with their lease."),
    counter(
        "packhouse_lease_invalidations_total",
        &[],
        "Results of look-ups dropped because a change made them wrong.",
    ),
    counter(
        "packhouse_lease_notices_total",
        &[("kind", "`sent`, `received`, `recovered` (read from the table because no notice arrived)")],
        "Notices of changes, by kind.",
    ),
    seconds("packhouse_lease_wait_seconds", &[], "Time that commits waited for other servers."),
    counter(
        "packhouse_lease_expiries_waited_total",
        &[],
        "Commits that waited until the lease of another server expired.",
    ),
    // Upstreams and passwords.
    counter(
        "packhouse_upstream_answers_total",
        &[("repository", "only on `metrics_listen`"), ("result", "`hit`, `miss`, `stale`, `error`")],
        "Upstream responses used by proxies: from the cache, from the upstream, from the cache after their time, or none.",
    ),
    counter(
        "packhouse_upstream_throttled_total",
        &[],
        "Upstream responses that asked to wait (Retry-After), each with a log line. Until then only the cache serves.",
    ),
    counter(
        "packhouse_password_hashes_total",
        &[],
        "Password hashes computed; only sign-ins and confirmations need one.",
    ),
    gauge("packhouse_password_hashes_running", &[], "Password hashes that are being computed."),
    gauge("packhouse_password_hashes_max", &[], "Limit of password hashes computed at one time."),
    gauge(
        "packhouse_password_hashes_waiting",
        &[],
        "Password checks that wait. More than a few for longer than a moment mean that someone is guessing.",
    ),
    gauge(
        "packhouse_password_hashes_waiting_max",
        &[],
        "Limit of password checks that wait; further ones are refused.",
    ),
    counter(
        "packhouse_password_checks_refused_total",
        &[],
        "Password checks refused with 429 because too many were waiting.",
    ),
];

/// Passes the help text of every metric to the recorder.
pub(super) fn describe() {
    for metric in METRICS {
        metrics::with_recorder(|recorder| {
            let (name, help) = (metric.name.into(), metric.help.into());
            match metric.kind {
                MetricKind::Counter => recorder.describe_counter(name, metric.unit, help),
                MetricKind::Gauge => recorder.describe_gauge(name, metric.unit, help),
                MetricKind::Histogram => recorder.describe_histogram(name, metric.unit, help),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_is_listed_once_under_a_conventional_name() {
        let mut names = BTreeSet::new();
        for metric in METRICS {
            assert!(names.insert(metric.name), "{} is listed twice", metric.name);
            assert!(metric.name.starts_with("packhouse_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == MetricKind::Counter,
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}: the help text is not a sentence", metric.name);
        }
    }
}
