//! The quota among a repository's settings.

/// The setting of a repository.
const QUOTA_BYTES: &str = "quota_bytes";

/// The quota among a repository's settings, as they are stored.
pub(crate) fn of_settings(settings: &str) -> Option<u64> {
    if !settings.contains(QUOTA_BYTES) {
        return None;
    }
    let settings: serde_json::Map<String, serde_json::Value> = serde_json::from_str(settings).ok()?;
    settings.get(QUOTA_BYTES)?.as_u64()
}
