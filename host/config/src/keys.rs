//! Table of all settings except those of single plugins: name in the file, environment variable,
//! default. The readers of the file, the environment and the command line use this table. A test
//! checks the example file against it.

use super::bound_keys::BOUNDS;
use super::key::{SettingKey, ValueKind, key};

/// Returns all settings except those of single plugins.
pub(crate) fn keys() -> impl Iterator<Item = &'static SettingKey> {
    GENERAL.iter().chain(BOUNDS)
}

/// General settings. The table of limits is [`BOUNDS`].
static GENERAL: &[SettingKey] = &[
    key(
        "data",
        "PACKHOUSE_DATA",
        ValueKind::Path,
        "./data",
        "Folder for the database, the blobs and the compile cache.",
    ),
    key(
        "packages_listen",
        "PACKHOUSE_PACKAGES_LISTEN",
        ValueKind::Address,
        "127.0.0.1:8080",
        "Address on which the repository host listens for package clients.",
    ),
    key(
        "api_listen",
        "PACKHOUSE_API_LISTEN",
        ValueKind::Address,
        "127.0.0.1:8081",
        "Address on which the portal and the management API listen; give the address of packages_listen to \
         serve both on one listener.",
    ),
    key(
        "metrics_listen",
        "PACKHOUSE_METRICS_LISTEN",
        ValueKind::Address,
        "",
        "Address of a listener for /metrics alone; if it is empty, api_listen serves /metrics, without the \
         names of repositories.",
    ),
    key(
        "metrics_allow",
        "PACKHOUSE_METRICS_ALLOW",
        ValueKind::Networks,
        "127.0.0.0/8, ::1/128",
        "Networks whose clients may read /metrics on api_listen; others are refused.",
    ),
    key(
        "base_url",
        "PACKHOUSE_BASE_URL",
        ValueKind::Url,
        "",
        "Public address of the repository host, with or without a path; if it is empty, links use the host \
         name of the request.",
    ),
    key(
        "api_url",
        "PACKHOUSE_API_URL",
        ValueKind::Url,
        "",
        "Public address of the portal and the management API, with or without a path.",
    ),
    key(
        "database_url",
        "PACKHOUSE_DATABASE_URL",
        ValueKind::Secret,
        "",
        "Address of the database: sqlite://PATH or postgres://USER@HOST/NAME; by default SQLite in the \
         data folder.",
    ),
    key(
        "blobs",
        "PACKHOUSE_BLOBS",
        ValueKind::Secret,
        "fs",
        "Storage of blobs: fs for the data folder, or \
         s3://BUCKET?endpoint=..&region=..&access_key_id=..&secret_access_key=..",
    ),
    key(
        "blobs_redirect.min_bytes",
        "PACKHOUSE_BLOBS_REDIRECT_MIN_BYTES",
        ValueKind::Bytes,
        "",
        "Minimum size of files that clients download directly from S3, for formats whose clients check \
         digests; if it is empty, none are.",
    ),
    key(
        "blobs_redirect.endpoint",
        "PACKHOUSE_BLOBS_REDIRECT_ENDPOINT",
        ValueKind::Url,
        "",
        "Address at which clients reach S3, for example https://s3.example; by default the one that the \
         server uses.",
    ),
    key(
        "blobs_redirect.lifetime_ms",
        "PACKHOUSE_BLOBS_REDIRECT_LIFETIME_MS",
        ValueKind::Millis,
        "300000",
        "How long a download address of S3 is valid for anyone who has it.",
    ),
    key(
        "blobs_idle_ms",
        "PACKHOUSE_BLOBS_IDLE_MS",
        ValueKind::Millis,
        "5000",
        "How long S3 may send nothing before a request to it fails; writing one part may take twice as long.",
    ),
    key(
        "readiness_interval_ms",
        "PACKHOUSE_READINESS_INTERVAL_MS",
        ValueKind::Millis,
        "5000",
        "Interval between readiness checks (for /readyz).",
    ),
    key(
        "log",
        "PACKHOUSE_LOG",
        ValueKind::Text,
        "info",
        "Log level, or levels by target, for example info,packhouse_store=debug.",
    ),
    key(
        "tracing.otlp_endpoint",
        "PACKHOUSE_TRACING_OTLP_ENDPOINT",
        ValueKind::Text,
        "",
        "OpenTelemetry collector that receives traces by OTLP over HTTP, for example \
         http://127.0.0.1:4318; if it is empty, no traces are recorded.",
    ),
    key(
        "tracing.sampling_ratio",
        "PACKHOUSE_TRACING_SAMPLING_RATIO",
        ValueKind::Text,
        "1",
        "Share of the traces that is sent, from 0 to 1; for a trace that a trusted proxy began, the proxy \
         decides.",
    ),
    key(
        "tracing.service_name",
        "PACKHOUSE_TRACING_SERVICE_NAME",
        ValueKind::Text,
        "packhouse",
        "Name of this server in traces.",
    ),
    key(
        "trusted_proxies",
        "PACKHOUSE_TRUSTED_PROXIES",
        ValueKind::Networks,
        "",
        "Networks of proxies whose Forwarded, X-Forwarded-* and traceparent fields are trusted.",
    ),
    key(
        "proxy_protocol",
        "PACKHOUSE_PROXY_PROTOCOL",
        ValueKind::Switch,
        "false",
        "Expects connections from trusted_proxies to begin with a PROXY protocol header (version 1 or 2) \
         that names the client.",
    ),
    key(
        "read_only",
        "PACKHOUSE_READ_ONLY",
        ValueKind::Switch,
        "false",
        "Refuses publishes, deletes and changes of accounts with 503 read_only; sign-in and downloads \
         still work.",
    ),
    key(
        "maintenance",
        "PACKHOUSE_MAINTENANCE",
        ValueKind::Text,
        "",
        "Message for maintenance: if it is set, every request gets it with 503 maintenance, and nothing is \
         served.",
    ),
    key(
        "sealing_key",
        "PACKHOUSE_SEALING_KEY",
        ValueKind::Secret,
        "",
        "Key that encrypts client secrets and upstream credentials and signs bearer tokens: at least 16 \
         characters, the same for all servers of a database; by default a file in the data folder.",
    ),
    key(
        "smtp_url",
        "PACKHOUSE_SMTP_URL",
        ValueKind::Secret,
        "",
        "Mail server for invitations and password resets: smtps://USER:PASSWORD@HOST, or smtp://HOST?tls=required.",
    ),
    key(
        "smtp_from",
        "PACKHOUSE_SMTP_FROM",
        ValueKind::Text,
        "",
        "Sender of those mails; by default packhouse at the public host.",
    ),
    key(
        "audit_days",
        "PACKHOUSE_AUDIT_DAYS",
        ValueKind::Count,
        "365",
        "Days for which the audit log is kept; 0 keeps it for ever.",
    ),
    key(
        "fetch_days",
        "PACKHOUSE_FETCH_DAYS",
        ValueKind::Count,
        "30",
        "Days for which the versions that each token fetched are recorded, at most 60; 0 turns the \
         recording off.",
    ),
    key(
        "tls.cert",
        "PACKHOUSE_TLS_CERT",
        ValueKind::Path,
        "",
        "PEM file with the certificate of both listeners and its chain; for several hosts, a list of files.",
    ),
    key(
        "tls.key",
        "PACKHOUSE_TLS_KEY",
        ValueKind::Path,
        "",
        "PEM file with the private key of tls.cert; one for each certificate, in the same order.",
    ),
    key(
        "tls.packages_cert",
        "PACKHOUSE_TLS_PACKAGES_CERT",
        ValueKind::Path,
        "",
        "PEM file with the certificate of packages_listen, if it differs from tls.cert.",
    ),
    key(
        "tls.packages_key",
        "PACKHOUSE_TLS_PACKAGES_KEY",
        ValueKind::Path,
        "",
        "PEM file with the private key of tls.packages_cert.",
    ),
    key(
        "tls.api_cert",
        "PACKHOUSE_TLS_API_CERT",
        ValueKind::Path,
        "",
        "PEM file with the certificate of api_listen, if it differs from tls.cert.",
    ),
    key(
        "tls.api_key",
        "PACKHOUSE_TLS_API_KEY",
        ValueKind::Path,
        "",
        "PEM file with the private key of tls.api_cert.",
    ),
    key(
        "tls.redirect_listen",
        "PACKHOUSE_TLS_REDIRECT_LISTEN",
        ValueKind::Address,
        "",
        "Address of a plain HTTP listener that redirects to https and answers HTTP-01, for example \
         0.0.0.0:80.",
    ),
    key(
        "tls.hsts_s",
        "PACKHOUSE_TLS_HSTS_S",
        ValueKind::Count,
        "31536000",
        "Seconds for which browsers use only https (Strict-Transport-Security); 0 leaves the header out.",
    ),
    key(
        "tls.acme.enabled",
        "PACKHOUSE_TLS_ACME_ENABLED",
        ValueKind::Switch,
        "false",
        "Orders certificates by ACME for listeners without certificate files; true also accepts the terms \
         of service of the directory.",
    ),
    key(
        "tls.acme.directory",
        "PACKHOUSE_TLS_ACME_DIRECTORY",
        ValueKind::Url,
        "https://acme-v02.api.letsencrypt.org/directory",
        "Address of the ACME directory.",
    ),
    key(
        "tls.acme.domains",
        "PACKHOUSE_TLS_ACME_DOMAINS",
        ValueKind::Text,
        "",
        "Host names of the certificate, as a list; by default the hosts of base_url and api_url.",
    ),
    key(
        "tls.acme.email",
        "PACKHOUSE_TLS_ACME_EMAIL",
        ValueKind::Text,
        "",
        "E-mail address to which the certificate authority reports problems.",
    ),
    key(
        "tls.acme.challenge",
        "PACKHOUSE_TLS_ACME_CHALLENGE",
        ValueKind::Text,
        "tls-alpn-01",
        "How the host names are proven: tls-alpn-01 on port 443 of a listener, or http-01 on \
         tls.redirect_listen.",
    ),
    key(
        "tls.acme.ca",
        "PACKHOUSE_TLS_ACME_CA",
        ValueKind::Path,
        "",
        "PEM file of additional authorities that may sign the certificate of the directory's own server.",
    ),
    key(
        "tls.acme.eab_kid",
        "PACKHOUSE_TLS_ACME_EAB_KID",
        ValueKind::Text,
        "",
        "Key identifier, if the authority requires an external account.",
    ),
    key(
        "tls.acme.eab_key",
        "PACKHOUSE_TLS_ACME_EAB_KEY",
        ValueKind::Secret,
        "",
        "Key of the external account, in base64url.",
    ),
    key(
        "owner.email",
        "PACKHOUSE_OWNER_EMAIL",
        ValueKind::Text,
        "owner@localhost",
        "E-mail address of the owner that is created in an empty database.",
    ),
    key(
        "owner.password",
        "PACKHOUSE_OWNER_PASSWORD",
        ValueKind::Secret,
        "",
        "Password of that owner; if it is empty, a random one is printed once.",
    ),
    key(
        "plugins.dir",
        "PACKHOUSE_PLUGINS",
        ValueKind::Path,
        "",
        "Folder from which plugins (.wasm files) are loaded; by default `plugins` beside the program.",
    ),
    key(
        "plugins.trusted_keys",
        "PACKHOUSE_PLUGINS_TRUSTED_KEYS",
        ValueKind::Path,
        "",
        "PEM files of public keys (ECDSA, P-256), as a list; one of them must have signed a component that \
         is installed. If it is empty, signatures are not checked, only digests.",
    ),
    key(
        "plugins.registry_auth",
        "PACKHOUSE_PLUGINS_REGISTRY_AUTH",
        ValueKind::Path,
        "",
        "File with credentials for the registries from which components are installed, in the format of \
         Docker's config.json; it is read each time it is needed.",
    ),
    key(
        "attestations.trusted_roots",
        "PACKHOUSE_ATTESTATIONS_TRUSTED_ROOTS",
        ValueKind::Path,
        "",
        "Files trusted_root.json of the Sigstore instances that may vouch for signed statements about \
         packages, as a list.",
    ),
    key(
        "attestations.trusted_keys",
        "PACKHOUSE_ATTESTATIONS_TRUSTED_KEYS",
        ValueKind::Path,
        "",
        "PEM files of public keys whose signatures of packages are trusted without a certificate, as a list.",
    ),
    key(
        "attestations.identities",
        "PACKHOUSE_ATTESTATIONS_IDENTITIES",
        ValueKind::Text,
        "",
        "Expected signers, as a list: each an issuer, a space and an identity, in which * matches any \
         text. If it is empty, every signer that a trusted root vouches for is accepted.",
    ),
    key(
        "upstream.allow_networks",
        "PACKHOUSE_UPSTREAM_ALLOW_NETWORKS",
        ValueKind::Networks,
        "",
        "Loopback, private and link-local networks in which upstreams may be, and to which upstreams in \
         them may redirect; for example 10.0.0.0/8, 10.0.0.7:8443, 127.0.0.0/8:*.",
    ),
    key(
        "upstream.connect_ms",
        "PACKHOUSE_UPSTREAM_CONNECT_MS",
        ValueKind::Millis,
        "10000",
        "Time limit for connecting to an upstream.",
    ),
    key(
        "upstream.idle_ms",
        "PACKHOUSE_UPSTREAM_IDLE_MS",
        ValueKind::Millis,
        "30000",
        "How long an upstream may send nothing before a request to it fails.",
    ),
    key(
        "upstream.concurrency",
        "PACKHOUSE_UPSTREAM_CONCURRENCY",
        ValueKind::Count,
        "32",
        "Maximum number of concurrent requests to the upstream of one repository; further ones wait.",
    ),
    key(
        "webhooks.timeout_ms",
        "PACKHOUSE_WEBHOOKS_TIMEOUT_MS",
        ValueKind::Millis,
        "10000",
        "Time limit for one webhook delivery.",
    ),
    key(
        "webhooks.retry_for_ms",
        "PACKHOUSE_WEBHOOKS_RETRY_FOR_MS",
        ValueKind::Millis,
        "86400000",
        "How long failed webhook deliveries are retried before the webhook is paused.",
    ),
    key(
        "webhooks.keep_ms",
        "PACKHOUSE_WEBHOOKS_KEEP_MS",
        ValueKind::Millis,
        "604800000",
        "How long finished deliveries, and those that wait for a paused webhook, are kept.",
    ),
    key(
        "webhooks.max_waiting",
        "PACKHOUSE_WEBHOOKS_MAX_WAITING",
        ValueKind::Count,
        "100000",
        "Maximum number of events that wait for one webhook; once it is reached, new events are dropped \
         until half of the queue is gone.",
    ),
];

#[cfg(test)]
mod tests;
