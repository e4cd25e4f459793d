//! Differences between two manifests of one package.

/// A difference between an archive and its published manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Path of the member, such as `scripts.install`.
    pub(crate) member: String,
    /// Value in the published manifest; `None` if the member is missing.
    pub(crate) published: Option<String>,
    /// Value in the archive's own `package.json`; `None` if the member is missing.
    pub(crate) own: Option<String>,
}
