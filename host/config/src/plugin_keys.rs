//! Settings of one plugin.

use super::key::{SettingKey, ValueKind, key};

/// Settings in the table `plugins.FORMAT`. Their environment variables begin with
/// `PACKHOUSE_PLUGINS_FORMAT_`.
pub(crate) static PLUGIN_KEYS: &[SettingKey] = &[
    key(
        "enabled",
        "ENABLED",
        ValueKind::Switch,
        "true",
        "Serves repositories of this format in organizations that have not switched the format themselves.",
    ),
    key(
        "wasi",
        "WASI",
        ValueKind::Switch,
        "false",
        "Links WASI without any access to the system, for plugins that import it.",
    ),
    key(
        "max_file_bytes",
        "MAX_FILE_BYTES",
        ValueKind::Bytes,
        "",
        "Maximum size of one uploaded file; by default what the plugin declares.",
    ),
    key(
        "max_manifest_bytes",
        "MAX_MANIFEST_BYTES",
        ValueKind::Bytes,
        "",
        "Maximum size of a manifest; at most, and by default, what the plugin declares.",
    ),
    key("memory_bytes", "MEMORY_BYTES", ValueKind::Bytes, "64 MiB", "Memory limit of one call."),
    key("call_timeout_ms", "CALL_TIMEOUT_MS", ValueKind::Millis, "10000", "Time limit of one call."),
    key(
        "hostcall_bytes",
        "HOSTCALL_BYTES",
        ValueKind::Bytes,
        "8 MiB",
        "Maximum number of bytes that one call of a host function may pass.",
    ),
    key(
        "decoded_bytes",
        "DECODED_BYTES",
        ValueKind::Bytes,
        "16 GiB",
        "Maximum number of bytes that the host decodes in one call.",
    ),
    key("handles", "HANDLES", ValueKind::Count, "1024", "Maximum number of open handles in one call."),
    key(
        "concurrency",
        "CONCURRENCY",
        ValueKind::Count,
        "250",
        "Maximum number of concurrent calls; those of all formats together are at most 1000.",
    ),
];
