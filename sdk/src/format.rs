//! What a plugin's author implements.

use crate::{Context, Description, Failure, Presentation, Router, UnshownPage, VersionFacts, VersionId};

/// A package format. The type itself holds nothing: a request starts with a fresh instance, which is then dropped.
pub trait Format: 'static {
    /// What the format is called and what the host has to know of it. Asked once, when the component is loaded; it must not
    /// reach for the host.
    fn describe() -> Description;

    /// The protocol's requests, a row each. Called for every request: keep it a list of rows.
    fn routes(router: &mut Router);
}

/// What the management API asks of a format that can do it; exported by `export!(T, upkeep)`.
pub trait Upkeep: Format {
    /// Removes a version with its files and records, and no longer shows it. The repository is `cx.target()`.
    ///
    /// # Errors
    /// A failure when there is no such version, or when it may not go.
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure>;

    /// Sets a version's `state` with its reason; an empty state takes it back.
    ///
    /// # Errors
    /// A failure when there is no such version, or when the format does not know the state.
    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure>;
}

/// What people are shown of a version; exported by `export!(T, present)`.
pub trait Present: Format {
    /// What is known of a version besides what is shown of it already. The repository is `cx.target()`, and nothing of it may be
    /// changed; an upstream is not asked, so what a proxy has not kept is left out.
    ///
    /// # Errors
    /// A failure of 404 when there is no such version.
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure>;
}

/// What retention has to know of versions besides what is shown of them; exported by `export!(T, upkeep, present, retention)`. The
/// repository is `cx.target()`, and nothing of it may be changed; an upstream is not asked.
pub trait Retention: Format {
    /// Facts about these versions, one for each in their order; none about one that is not there.
    ///
    /// # Errors
    /// A failure when they cannot be told: then nothing is deleted.
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure>;

    /// A page of what [`Upkeep::delete_version`] would remove and nobody is shown. `after` is empty at first.
    ///
    /// # Errors
    /// A failure when it cannot be told: then nothing is deleted.
    fn list_unshown(cx: &Context, after: &str) -> Result<UnshownPage, Failure> {
        let _ = (cx, after);
        Ok(UnshownPage::default())
    }
}

/// How the format orders versions, by which ranges of advisories are judged; exported by
/// `export!(T, upkeep, present, retention, versions)`. It knows nothing of a repository, and must not reach for the host.
pub trait Versions: Format {
    /// A version as it is ordered: equal where the format holds two to be equal, however they are written.
    type Version: Ord;

    /// Reads a version, as it stands in a repository or in an advisory; none for what is no version of the format.
    fn version(text: &str) -> Option<Self::Version>;
}
