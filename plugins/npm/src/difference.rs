//! What two manifests of one package say differently.

/// Where a package and its manifest differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Which member, as `scripts.install`.
    pub(crate) member: String,
    /// What the manifest says.
    pub(crate) published: Option<String>,
    /// What the archive's own `package.json` says.
    pub(crate) own: Option<String>,
}
