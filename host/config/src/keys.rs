//! Every setting there is but those of single plugins: its name in the file, its environment variable, its default. The one table
//! from which the file, the environment and the command line are read and the example file is checked.

use super::key::{Key, Kind, key};

/// All settings but those of single plugins.
pub(crate) static KEYS: &[Key] = &[
    key(
        "data",
        "PACKHOUSE_DATA",
        Kind::Path,
        "./data",
        "Folder of the database, the blobs and the compile cache.",
    ),
    key(
        "packages_listen",
        "PACKHOUSE_PACKAGES_LISTEN",
        Kind::Address,
        "127.0.0.1:8080",
        "Where package clients connect.",
    ),
    key(
        "api_listen",
        "PACKHOUSE_API_LISTEN",
        Kind::Address,
        "127.0.0.1:8081",
        "Where the management API listens.",
    ),
    key(
        "metrics_listen",
        "PACKHOUSE_METRICS_LISTEN",
        Kind::Address,
        "",
        "A listener for /metrics alone; without it /metrics is on the API's, and names no repository.",
    ),
    key("base_url", "PACKHOUSE_BASE_URL", Kind::Url, "", "Public address of the repository host."),
    key("api_url", "PACKHOUSE_API_URL", Kind::Url, "", "Public address of the management API."),
    key(
        "database_url",
        "PACKHOUSE_DATABASE_URL",
        Kind::Secret,
        "",
        "sqlite://PATH or postgres://USER@HOST/NAME; by default SQLite in the data folder.",
    ),
    key(
        "blobs",
        "PACKHOUSE_BLOBS",
        Kind::Secret,
        "fs",
        "fs for the data folder, or s3://BUCKET?endpoint=..&region=..&access_key_id=..&secret_access_key=..",
    ),
    key(
        "blobs_idle_ms",
        "PACKHOUSE_BLOBS_IDLE_MS",
        Kind::Millis,
        "10000",
        "Time without a byte of what was asked of S3; a part that is written may take three times as long.",
    ),
    key(
        "readiness_interval_ms",
        "PACKHOUSE_READINESS_INTERVAL_MS",
        Kind::Millis,
        "5000",
        "Time between two looks at what the server stands on, for /readyz.",
    ),
    key(
        "log",
        "PACKHOUSE_LOG",
        Kind::Text,
        "info",
        "What is logged: a level, or levels by target as in info,packhouse_store=debug.",
    ),
    key(
        "tracing.otlp_endpoint",
        "PACKHOUSE_TRACING_OTLP_ENDPOINT",
        Kind::Text,
        "",
        "Collector of OpenTelemetry that takes traces by OTLP over HTTP, as in http://127.0.0.1:4318; without it none are made.",
    ),
    key(
        "tracing.sampling_ratio",
        "PACKHOUSE_TRACING_SAMPLING_RATIO",
        Kind::Text,
        "1",
        "Which part of the traces is sent, from 0 to 1; a trusted proxy that has begun a trace has decided for it.",
    ),
    key(
        "tracing.service_name",
        "PACKHOUSE_TRACING_SERVICE_NAME",
        Kind::Text,
        "packhouse",
        "What this server is called in traces.",
    ),
    key(
        "trusted_proxies",
        "PACKHOUSE_TRUSTED_PROXIES",
        Kind::Networks,
        "",
        "Networks whose Forwarded, X-Forwarded-* and traceparent fields count.",
    ),
    key(
        "sealing_key",
        "PACKHOUSE_SEALING_KEY",
        Kind::Secret,
        "",
        "Key with which client secrets and upstream credentials are sealed and bearers signed, at least 16 characters, the same for all servers of a database; by default a file in the data folder.",
    ),
    key(
        "smtp_url",
        "PACKHOUSE_SMTP_URL",
        Kind::Secret,
        "",
        "Mail server for invitations and password resets: smtps://USER:PASSWORD@HOST, or smtp://HOST?tls=required.",
    ),
    key(
        "smtp_from",
        "PACKHOUSE_SMTP_FROM",
        Kind::Text,
        "",
        "Who those mails come from; by default packhouse at the public host.",
    ),
    key(
        "audit_days",
        "PACKHOUSE_AUDIT_DAYS",
        Kind::Count,
        "365",
        "Days for which the audit log is kept; 0 for ever.",
    ),
    key(
        "owner.email",
        "PACKHOUSE_OWNER_EMAIL",
        Kind::Text,
        "owner@localhost",
        "E-mail of the owner whom an empty database gets.",
    ),
    key(
        "owner.password",
        "PACKHOUSE_OWNER_PASSWORD",
        Kind::Secret,
        "",
        "Password of that owner; without it a random one is printed once.",
    ),
    key(
        "plugins.dir",
        "PACKHOUSE_PLUGINS",
        Kind::Path,
        "",
        "Folder whose .wasm files are loaded; by default `plugins` beside the program.",
    ),
    key(
        "upstream.allow_networks",
        "PACKHOUSE_UPSTREAM_ALLOW_NETWORKS",
        Kind::Networks,
        "",
        "Loopback, private and link-local networks in which upstreams may be, and to which those that are there may lead; as 10.0.0.0/8, 10.0.0.7:8443, 127.0.0.0/8:*.",
    ),
    key(
        "upstream.connect_ms",
        "PACKHOUSE_UPSTREAM_CONNECT_MS",
        Kind::Millis,
        "10000",
        "Time for a connection to an upstream.",
    ),
    key(
        "upstream.idle_ms",
        "PACKHOUSE_UPSTREAM_IDLE_MS",
        Kind::Millis,
        "30000",
        "Time without a byte of what was asked of an upstream.",
    ),
    key(
        "upstream.concurrency",
        "PACKHOUSE_UPSTREAM_CONCURRENCY",
        Kind::Count,
        "32",
        "Requests to one repository's upstream at one time; more wait.",
    ),
    key(
        "database.statement_timeout_ms",
        "PACKHOUSE_DATABASE_STATEMENT_TIMEOUT_MS",
        Kind::Millis,
        "10000",
        "Time of one statement of PostgreSQL; two seconds later its connection is given up.",
    ),
    key(
        "database.lock_timeout_ms",
        "PACKHOUSE_DATABASE_LOCK_TIMEOUT_MS",
        Kind::Millis,
        "3000",
        "How long a statement of PostgreSQL waits for what another process has locked.",
    ),
    key(
        "gc.grace_ms",
        "PACKHOUSE_GC_GRACE_MS",
        Kind::Millis,
        "86400000",
        "How long what nothing names any more is kept.",
    ),
    key(
        "gc.lease_ms",
        "PACKHOUSE_GC_LEASE_MS",
        Kind::Millis,
        "86400000",
        "How long what was uploaded, or found there by a publish, is kept for the publish to name it.",
    ),
    key(
        "gc.upload_ttl_ms",
        "PACKHOUSE_GC_UPLOAD_TTL_MS",
        Kind::Millis,
        "86400000",
        "How long a session of uploading is kept to which nothing is added.",
    ),
    key(
        "gc.interval_ms",
        "PACKHOUSE_GC_INTERVAL_MS",
        Kind::Millis,
        "3600000",
        "Time between two collections of garbage; 0 for none.",
    ),
    key(
        "staging.repository_bytes",
        "PACKHOUSE_STAGING_REPOSITORY_BYTES",
        Kind::Bytes,
        "128 GiB",
        "Bytes of one repository that were received, decoded or uploaded and are not published yet.",
    ),
    key(
        "staging.server_bytes",
        "PACKHOUSE_STAGING_SERVER_BYTES",
        Kind::Bytes,
        "256 GiB",
        "The same of all repositories together.",
    ),
    key(
        "staging.keep_free_bytes",
        "PACKHOUSE_STAGING_KEEP_FREE_BYTES",
        Kind::Bytes,
        "1 GiB",
        "What stays free on the disk of a blob folder; 0 for nothing.",
    ),
    key(
        "responses.compression",
        "PACKHOUSE_RESPONSES_COMPRESSION",
        Kind::Switch,
        "true",
        "Whether documents and lists are sent compressed to clients that accept gzip or zstd.",
    ),
    key(
        "limits.api_body_bytes",
        "PACKHOUSE_LIMITS_API_BODY_BYTES",
        Kind::Bytes,
        "1 MiB",
        "Body of an API call.",
    ),
    key(
        "limits.api_json_tokens",
        "PACKHOUSE_LIMITS_API_JSON_TOKENS",
        Kind::Count,
        "10000",
        "JSON tokens in the body of an API call.",
    ),
    key(
        "limits.api_bodies_bytes",
        "PACKHOUSE_LIMITS_API_BODIES_BYTES",
        Kind::Bytes,
        "64 MiB",
        "Bodies of all API calls that are read at one time; more are told to come back.",
    ),
    key(
        "limits.api_bodies_bytes_per_address",
        "PACKHOUSE_LIMITS_API_BODIES_BYTES_PER_ADDRESS",
        Kind::Bytes,
        "8 MiB",
        "The same of the calls from one address (IPv6: its /64).",
    ),
    key(
        "limits.api_body_rate",
        "PACKHOUSE_LIMITS_API_BODY_RATE",
        Kind::Bytes,
        "1 KiB",
        "Bytes a second with which the body of an API call comes in at least; 0 for any.",
    ),
    key(
        "limits.body_idle_ms",
        "PACKHOUSE_LIMITS_BODY_IDLE_MS",
        Kind::Millis,
        "30000",
        "Time without a byte of a declared body, after which 408 is answered.",
    ),
    key(
        "limits.send_idle_ms",
        "PACKHOUSE_LIMITS_SEND_IDLE_MS",
        Kind::Millis,
        "120000",
        "Time in which a client takes no byte of an answer, after which it is given up.",
    ),
    key(
        "limits.idle_ms",
        "PACKHOUSE_LIMITS_IDLE_MS",
        Kind::Millis,
        "60000",
        "Time for which a connection is kept with nothing under way on it; 5 s at most while places are scarce.",
    ),
    key(
        "limits.header_ms",
        "PACKHOUSE_LIMITS_HEADER_MS",
        Kind::Millis,
        "30000",
        "Time for the head of a request.",
    ),
    key(
        "limits.connections",
        "PACKHOUSE_LIMITS_CONNECTIONS",
        Kind::Count,
        "10000",
        "Connections at one time, on each listener; fewer where the system allows too few open files.",
    ),
    key(
        "limits.connections_per_address",
        "PACKHOUSE_LIMITS_CONNECTIONS_PER_ADDRESS",
        Kind::Count,
        "1000",
        "Connections from one address (IPv6: its /64), but for trusted_proxies; never more than half of all.",
    ),
    key(
        "limits.drain_ms",
        "PACKHOUSE_LIMITS_DRAIN_MS",
        Kind::Millis,
        "0",
        "Time for which a server that is to stop goes on serving with readyz at 503, so that a balancer sends no more.",
    ),
    key(
        "limits.shutdown_ms",
        "PACKHOUSE_LIMITS_SHUTDOWN_MS",
        Kind::Millis,
        "30000",
        "Time for a stop, once nothing new is accepted: for what is in flight, and for closing the store.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::nearest;

    #[test]
    fn the_nearest_name_is_the_one_with_fewest_changes() {
        let names = || KEYS.iter().map(|key| key.name);
        assert_eq!(nearest("packges_listen", names()), Some("packages_listen"));
        assert_eq!(nearest("limits.api_body_byte", names()), Some("limits.api_body_bytes"));
    }

    #[test]
    fn a_variable_is_its_key_in_capitals() {
        for key in KEYS.iter().filter(|key| key.name != "plugins.dir") {
            let expected = format!("PACKHOUSE_{}", key.name.replace('.', "_").to_uppercase());
            assert_eq!(key.env, expected);
        }
    }
}
