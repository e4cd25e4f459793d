//! Changes to what a repository holds, by a person and not by a client: deleting packages and versions, and saying of a version
//! that it should not be used. What either means is the format's; one whose plugin does not offer it answers 405.

mod deletions;
mod plugin;
mod trash;

use std::sync::Arc;
use std::time::Duration;

use packhouse_identity::access::{Kind, Rights};
use packhouse_runtime::VersionState;
use packhouse_store::{AuditEvent, RepositoryRow, Version};
use packhouse_wire::catalogue;

use super::{Actor, repositories};
use crate::error::ApiError;
pub use deletions::resume;
pub(in crate::operations) use plugin::{Named, delete_into, done};
use plugin::{delete_one, mark_one, offering};
pub use trash::{restore, trash};

/// How long a package's deletion is waited for.
const WAITED: Duration = Duration::from_secs(2);

/// A version of a package in a repository.
#[derive(Clone, Copy, Debug)]
pub struct VersionPath<'a> {
    /// The repository's id, as it was written.
    pub repository: &'a str,
    /// The package's name.
    pub package: &'a str,
    /// The version's.
    pub version: &'a str,
}

impl<'a> VersionPath<'a> {
    fn named(&self) -> Named<'a> {
        Named { package: self.package, version: self.version }
    }
}

/// What became of a package that was to be deleted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deleted {
    /// It is gone.
    Whole,
    /// It takes longer than two seconds, and goes on by itself; there were so many versions when it began.
    Begun {
        /// How many.
        versions: usize,
    },
}

/// Says of a version that it should not be used, or takes that back. Needs publish there.
pub async fn mark(actor: &Actor, path: VersionPath<'_>, state: VersionState) -> Result<Version, ApiError> {
    let Held { repository, versions } =
        held(actor, path.repository, path.package, |rights| rights.publish).await?;
    find(versions, path.version)?;
    let plugin = offering(&actor.app, &repository)?;
    let event = event(actor, &repository, "mark_version", path.named());
    mark_one(&repository, &plugin, event, path.named(), state).await?;
    find(actor.app.store.versions(repository.id, path.package).await?, path.version)
}

/// Deletes a version. Needs delete there.
pub async fn delete_version(actor: &Actor, path: VersionPath<'_>) -> Result<(), ApiError> {
    let Held { repository, versions } =
        held(actor, path.repository, path.package, |rights| rights.delete).await?;
    let version = find(versions, path.version)?.version;
    let plugin = offering(&actor.app, &repository)?;
    let named = Named { package: path.package, version: &version };
    let event = event(actor, &repository, "delete_version", named);
    delete_one(&actor.app, &repository, &plugin, event, named).await
}

/// Deletes a package with all its versions, one after the other. What takes longer than two seconds goes on by itself, also after a
/// restart; until its end the versions that are left are shown. Needs delete there.
pub async fn delete_package(actor: &Actor, repository: &str, package: &str) -> Result<Deleted, ApiError> {
    let Held { repository, versions } = held(actor, repository, package, |rights| rights.delete).await?;
    offering(&actor.app, &repository)?;
    let count = versions.len();
    let versions = versions.into_iter().map(|version| version.version).collect();
    let event = actor.event("delete_version", "");
    let deletion = actor.app.store.begin_deletion(repository.id, package, versions, event).await?;
    let app = Arc::clone(&actor.app);
    // A task of its own: it goes on when the caller does not wait for it.
    let work = tokio::spawn(async move { deletions::carry_out(&app, deletion).await });
    match tokio::time::timeout(WAITED, work).await {
        Ok(Ok(Err(error))) => Err(error),
        Ok(Ok(Ok(true))) => Ok(Deleted::Whole),
        Ok(Err(panic)) => Err(ApiError::Internal(panic.into())),
        Ok(Ok(Ok(false))) | Err(_) => Ok(Deleted::Begun { versions: count }),
    }
}

/// A repository and the versions of one of its packages.
struct Held {
    repository: RepositoryRow,
    versions: Vec<Version>,
}

/// The repository and the versions of its package, where the actor holds the right: 404 for what is not there, or what the actor may
/// not know of, 405 for a repository that holds nothing of its own.
async fn held(
    actor: &Actor,
    repository: &str,
    package: &str,
    right: fn(&Rights) -> bool,
) -> Result<Held, ApiError> {
    let repository = repositories::find(actor, repository).await?;
    let rights = actor.permissions().rights(repository.id);
    let elsewhere = match Kind::of(&repository.kind) {
        Kind::Hosted => None,
        Kind::Proxy => Some(&catalogue::WRITES_NOT_PERMITTED_ON_PROXY),
        Kind::Group => Some(&catalogue::WRITES_NOT_PERMITTED_ON_GROUP),
    };
    if let Some(code) = elsewhere {
        actor.judge(right(&rights), &catalogue::ROLE_MISMATCH)?;
        return Err(ApiError::from(code));
    }
    let versions = actor.app.store.versions(repository.id, package).await?;
    // Who may not read there is not told either which packages there are.
    let knows = rights.read || repository.public || right(&rights);
    if versions.is_empty() || !knows {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    actor.judge(right(&rights), &catalogue::ROLE_MISMATCH)?;
    Ok(Held { repository, versions })
}

fn find(versions: Vec<Version>, wanted: &str) -> Result<Version, ApiError> {
    let found = versions.into_iter().find(|version| version.version == wanted);
    found.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// What is remembered of a change to a version.
fn event(actor: &Actor, repository: &RepositoryRow, action: &str, version: Named<'_>) -> AuditEvent {
    actor.event(action, format!("{}/{} {}", repository.name, version.package, version.version))
}
