//! Changes to a repository's content by a person instead of a client: deleting packages and
//! versions, and marking versions that should not be used. The format's plugin defines their
//! effect; a plugin without this interface answers 405.

mod deletions;
mod plugin;
mod trash;

use std::sync::Arc;
use std::time::Duration;

use packhouse_identity::access::RepositoryKind;
use packhouse_identity::permissions::RepositoryAction;
use packhouse_runtime::VersionState;
use packhouse_store::{AuditEvent, RepositoryRow, Version};
use packhouse_wire::catalogue;

use super::{Actor, repositories};
use crate::error::ApiError;
pub use deletions::job;
pub(in crate::operations) use plugin::{VersionRef, delete_into, plugin_outcome};
use plugin::{delete_one, mark_one, upkeep_plugin};
pub use trash::{restore, trash};

/// Time for which a call waits for the deletion of a package.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A version of a package in a repository.
#[derive(Clone, Copy, Debug)]
pub struct VersionPath<'a> {
    /// Unchecked id of the repository.
    pub repository: &'a str,
    pub package: &'a str,
    pub version: &'a str,
}

impl<'a> VersionPath<'a> {
    fn named(&self) -> VersionRef<'a> {
        VersionRef { package: self.package, version: self.version }
    }
}

/// Outcome of deleting a package.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deleted {
    Whole,
    /// The deletion takes longer than two seconds and continues in the background.
    InProgress {
        /// Number of versions at the start.
        versions: usize,
    },
}

/// Marks a version that should not be used, or removes the mark. Needs publish for the package in
/// the repository.
pub async fn mark(actor: &Actor, path: VersionPath<'_>, state: VersionState) -> Result<Version, ApiError> {
    let PackageVersions { repository, versions } =
        find_package(actor, path.repository, path.package, RepositoryAction::Publish).await?;
    find(versions, path.version)?;
    let plugin = upkeep_plugin(&actor.app, &repository)?;
    let event = event(actor, &repository, "mark_version", path.named());
    mark_one(&repository, &plugin, event, path.named(), state).await?;
    find(actor.app.store.versions(repository.id, path.package).await?, path.version)
}

/// Deletes a version. Needs delete for the package in the repository.
pub async fn delete_version(actor: &Actor, path: VersionPath<'_>) -> Result<(), ApiError> {
    let PackageVersions { repository, versions } =
        find_package(actor, path.repository, path.package, RepositoryAction::Delete).await?;
    let version = find(versions, path.version)?.version;
    let plugin = upkeep_plugin(&actor.app, &repository)?;
    let named = VersionRef { package: path.package, version: &version };
    let event = event(actor, &repository, "delete_version", named);
    delete_one(&actor.app, &repository, &plugin, event, named).await
}

/// Deletes a package with all its versions, one after the other. A deletion that takes longer than
/// two seconds continues in the background, also after a restart; until it ends, the remaining
/// versions are listed. Needs delete for the package in the repository.
pub async fn delete_package(actor: &Actor, repository: &str, package: &str) -> Result<Deleted, ApiError> {
    let PackageVersions { repository, versions } =
        find_package(actor, repository, package, RepositoryAction::Delete).await?;
    upkeep_plugin(&actor.app, &repository)?;
    let count = versions.len();
    let versions = versions.into_iter().map(|version| version.version).collect();
    let event = actor.event("delete_version", "");
    let deletion = actor.app.store.begin_deletion(repository.id, package, versions, event).await?;
    let app = Arc::clone(&actor.app);
    // A task of its own continues when the caller no longer waits for it.
    let work = tokio::spawn(async move { deletions::carry_out(&app, deletion).await });
    match tokio::time::timeout(MAX_WAIT, work).await {
        Ok(Ok(Err(error))) => Err(error),
        Ok(Ok(Ok(true))) => Ok(Deleted::Whole),
        Ok(Err(panic)) => Err(ApiError::Internal(panic.into())),
        Ok(Ok(Ok(false))) | Err(_) => Ok(Deleted::InProgress { versions: count }),
    }
}

/// Repository with the versions of one of its packages.
struct PackageVersions {
    repository: RepositoryRow,
    versions: Vec<Version>,
}

/// Finds a repository and the versions of one of its packages, if the actor may publish or delete
/// the package. 404 if they do not exist or the actor may not see them; 405 for a repository
/// without content of its own; 403 `role_mismatch`, or `scope_mismatch_package` if the actor holds
/// the right for other packages only.
async fn find_package(
    actor: &Actor,
    repository: &str,
    package: &str,
    action: RepositoryAction,
) -> Result<PackageVersions, ApiError> {
    let repository = repositories::find(actor, repository).await?;
    let held = actor.permissions().patterns(repository.id, &repository.name, action);
    let may = !held.is_none();
    let elsewhere = match RepositoryKind::of(&repository.kind) {
        RepositoryKind::Hosted => None,
        RepositoryKind::Proxy => Some(&catalogue::WRITES_NOT_PERMITTED_ON_PROXY),
        RepositoryKind::Group => Some(&catalogue::WRITES_NOT_PERMITTED_ON_GROUP),
    };
    if let Some(code) = elsewhere {
        actor.judge(may, &catalogue::ROLE_MISMATCH)?;
        return Err(ApiError::from(code));
    }
    let versions = actor.app.store.versions(repository.id, package).await?;
    // The response must not reveal which packages exist to an actor without read access.
    let knows = repositories::may_read(actor, &repository) || may;
    if versions.is_empty() || !knows {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    actor.judge(may, &catalogue::ROLE_MISMATCH)?;
    judge_package(actor, &repository, package, action)?;
    Ok(PackageVersions { repository, versions })
}

/// Checks that the actor's right to publish or to delete in the repository includes this package;
/// otherwise 403 `scope_mismatch_package`.
fn judge_package(
    actor: &Actor,
    repository: &RepositoryRow,
    package: &str,
    action: RepositoryAction,
) -> Result<(), ApiError> {
    let held = actor.permissions().patterns(repository.id, &repository.name, action);
    if held.covers(actor.app.folding_of(&repository.format), package) {
        return Ok(());
    }
    let verb = if action == RepositoryAction::Publish { "publish" } else { "delete" };
    Err(ApiError::with(&catalogue::PACKAGE_OUT_OF_SCOPE, &format!("{verb} {package}")))
}

fn find(versions: Vec<Version>, number: &str) -> Result<Version, ApiError> {
    let found = versions.into_iter().find(|version| version.version == number);
    found.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// Audit event of a change to a version.
fn event(actor: &Actor, repository: &RepositoryRow, action: &str, version: VersionRef<'_>) -> AuditEvent {
    actor.event(action, format!("{}/{} {}", repository.name, version.package, version.version))
}
