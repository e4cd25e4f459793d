//! The quota in the settings of a repository.

const QUOTA_BYTES: &str = "quota_bytes";

/// Reads the quota from the stored settings of a repository.
pub(crate) fn of_settings(settings: &str) -> Option<u64> {
    if !settings.contains(QUOTA_BYTES) {
        return None;
    }
    let settings: serde_json::Map<String, serde_json::Value> = serde_json::from_str(settings).ok()?;
    settings.get(QUOTA_BYTES)?.as_u64()
}
