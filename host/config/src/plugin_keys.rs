//! The settings of one plugin.

use super::key::{Key, Kind, key};

/// Settings of one plugin, in the table `plugins.FORMAT`; in the environment `PACKHOUSE_PLUGINS_FORMAT_…`.
pub(crate) static PLUGIN_KEYS: &[Key] = &[
    key(
        "enabled",
        "ENABLED",
        Kind::Switch,
        "true",
        "Whether its repositories are served where no organization has switched the format.",
    ),
    key("wasi", "WASI", Kind::Switch, "false", "Links WASI with nothing granted, for guests that import it."),
    key(
        "max_file_bytes",
        "MAX_FILE_BYTES",
        Kind::Bytes,
        "",
        "One file of an upload; by default what the plugin declares.",
    ),
    key(
        "max_manifest_bytes",
        "MAX_MANIFEST_BYTES",
        Kind::Bytes,
        "",
        "A manifest; at most, and by default, what the plugin declares.",
    ),
    key("memory_bytes", "MEMORY_BYTES", Kind::Bytes, "64 MiB", "Memory of one call."),
    key("call_timeout_ms", "CALL_TIMEOUT_MS", Kind::Millis, "10000", "Time of one call."),
    key(
        "hostcall_bytes",
        "HOSTCALL_BYTES",
        Kind::Bytes,
        "8 MiB",
        "Bytes handed over in one call of the host.",
    ),
    key("decoded_bytes", "DECODED_BYTES", Kind::Bytes, "16 GiB", "Bytes that the host decodes in one call."),
    key("handles", "HANDLES", Kind::Count, "1024", "Handles open at one time in a call."),
    key(
        "concurrency",
        "CONCURRENCY",
        Kind::Count,
        "250",
        "Calls at one time; all formats' together are 1000 at most.",
    ),
];
