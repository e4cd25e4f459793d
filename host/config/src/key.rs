//! What is known of a setting, and how a misspelled name finds the one that was meant.

/// What a setting's text may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A file or folder.
    Path,
    /// `host:port`.
    Address,
    /// An http or https address.
    Url,
    /// A size: a whole number of bytes, or one with B, KB, MB, GB, KiB, MiB or GiB behind it.
    Bytes,
    /// A whole number of milliseconds.
    Millis,
    /// A whole number.
    Count,
    /// `true` or `false`.
    Switch,
    /// IP networks, separated by commas.
    Networks,
    /// Any text, never shown.
    Secret,
}

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file, with dots for tables.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// What its text may be.
    pub kind: Kind,
    /// Its text where nothing sets it; empty: not set.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
}

/// One row of a table.
pub(crate) const fn key(
    name: &'static str,
    env: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key { name, env, kind, default, about }
}

/// The name that differs least from what was written.
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.min_by_key(|name| strsim::levenshtein(written, name))
}
