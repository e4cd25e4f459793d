//! Traits that a plugin implements.

use crate::{Context, Description, Failure, Presentation, Router, UnshownPage, VersionFacts, VersionId};

/// Package format. The type itself holds no state: each request runs in a fresh instance, which is
/// then dropped.
pub trait Format: 'static {
    /// Describes the format. The host calls this once, when it loads the component. The function
    /// must not call the host.
    fn describe() -> Description;

    /// Adds a row for each request of the protocol. The SDK calls this for every request, so the
    /// function should only add rows.
    fn routes(router: &mut Router);
}

/// Operations of the management API, exported by `export!(T, upkeep)`.
pub trait Upkeep: Format {
    /// Deletes a version with its files and records, and removes it from the listing. The
    /// repository is `cx.target()`.
    ///
    /// # Errors
    /// A failure if the version does not exist, or must not be deleted.
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure>;

    /// Sets the `state` of a version with its reason; an empty state resets it.
    ///
    /// # Errors
    /// A failure if the version does not exist, or if the format does not know the state.
    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure>;
}

/// Details of a version for its page in the portal, exported by `export!(T, present)`.
pub trait Present: Format {
    /// Returns the details of a version that its listing does not contain. The repository is
    /// `cx.target()`; it is read-only, and upstreams cannot be reached. A proxy can only report
    /// what it has stored.
    ///
    /// # Errors
    /// A failure of 404 if the version does not exist.
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure>;
}

/// Facts about versions for retention policies, exported by `export!(T, upkeep, present,
/// retention)`. The repository is `cx.target()`; it is read-only, and upstreams cannot be reached.
pub trait Retention: Format {
    /// Returns facts about these versions, one entry for each in their order; `None` for a version
    /// that does not exist.
    ///
    /// # Errors
    /// A failure if the facts cannot be determined. Retention then deletes nothing.
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure>;

    /// Returns a page of items that are not listed but that [`Upkeep::delete_version`] can delete.
    /// `after` is empty for the first page.
    ///
    /// # Errors
    /// A failure if the items cannot be determined. Retention then deletes nothing.
    fn list_unshown(cx: &Context, after: &str) -> Result<UnshownPage, Failure> {
        let _ = (cx, after);
        Ok(UnshownPage::default())
    }
}

/// Version order of the format, exported by `export!(T, upkeep, present, retention, versions)`. The
/// host uses the order to evaluate the version ranges of advisories. The order is the same for all
/// repositories, and its functions must not call the host.
pub trait Versions: Format {
    /// Version that can be compared. Versions that the format considers equal are equal, however
    /// they are written.
    type Version: Ord;

    /// Parses a version from a repository or an advisory; `None` if the format does not accept the
    /// text as a version.
    fn version(text: &str) -> Option<Self::Version>;
}
