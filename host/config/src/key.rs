//! Description of a setting, and the search for the nearest known name.

/// Type of a setting's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ValueKind {
    Text,
    Path,
    Address,
    /// An http or https address.
    Url,
    /// An integer number of bytes, optionally with a unit: B, KB, MB, GB, KiB, MiB or GiB.
    Bytes,
    /// An integer number of milliseconds.
    Millis,
    Count,
    Switch,
    /// IP networks, separated by commas.
    Networks,
    Secret,
}

#[derive(Debug)]
pub struct SettingKey {
    /// Name in the file, with dots for tables.
    pub name: &'static str,
    pub env: &'static str,
    pub kind: ValueKind,
    /// Value that applies if nothing sets this setting; an empty text means "not set".
    pub default: &'static str,
    /// Description for operators.
    pub about: &'static str,
}

/// Builds one row of a table.
pub(crate) const fn key(
    name: &'static str,
    env: &'static str,
    kind: ValueKind,
    default: &'static str,
    about: &'static str,
) -> SettingKey {
    SettingKey { name, env, kind, default, about }
}

/// Returns the name with the smallest edit distance to `written`.
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.min_by_key(|name| strsim::levenshtein(written, name))
}
