//! Packages of a repository and their versions, of any format, as its plugin lists them.

use std::sync::Arc;

use packhouse_config::repository_settings::view;
use packhouse_runtime::{Action, Call as PluginCall, CallError, Plugin, Presentation, RequestHead};
use packhouse_store::{
    Attestation, Blob, Digest, PackageSummary, Readable, RepositoryRow, StoreError, Version, VersionDetails,
    VersionDocument,
};
use packhouse_wire::catalogue;

use super::advisories::{self, Mark};
use super::connection::{InstallText, install};
use super::search::{self, Query, SearchPage};
use super::{Actor, loaded, repositories};
use crate::error::ApiError;

#[derive(Clone, Debug)]
pub enum Search {
    /// All packages by name, after this name.
    Names {
        /// Last name of the previous page; empty for the first page.
        after: String,
    },
    /// Matching packages: first the package of that name, then names that begin with the words,
    /// then the others, each by name.
    Words {
        words: String,
        /// The `next` of the previous page.
        after: Option<String>,
    },
}

pub struct Packages {
    pub summaries: Vec<PackageSummary>,
    /// Start of the next page: a name, or a position in the search results.
    pub next: Option<String>,
}

/// Returns at most `limit` packages of a repository. Needs read access to it.
pub async fn list(actor: &Actor, id: &str, search: Search, limit: u32) -> Result<Packages, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let store = &actor.app.store;
    let (names, next) = match search {
        Search::Names { after } => {
            let mut names = store.package_names(repository.id, &after, limit + 1).await?;
            let more = names.len() > limit as usize;
            names.truncate(limit as usize);
            let next = names.last().filter(|_| more).cloned();
            (names, next)
        }
        Search::Words { words, after } => {
            // Read access was checked above.
            let readable = Readable { all: true, these: Vec::new() };
            let (format, repository) = (None, Some(repository.id));
            let query = Query { text: words, format, repository, after, limit, readable };
            let SearchPage { packages, next } = search::find(actor, query).await?;
            let summaries = packages.into_iter().map(|found| PackageSummary {
                name: found.place.name,
                versions: found.versions,
                latest: found.latest,
                updated_at: found.updated_at,
            });
            return Ok(Packages { summaries: summaries.collect(), next });
        }
    };
    Ok(Packages { summaries: store.package_summaries(repository.id, names).await?, next })
}

/// Returns the versions of a package, newest first. 404 `not_found` if it does not exist. Needs
/// read access to the repository.
pub async fn versions(actor: &Actor, id: &str, package: &str) -> Result<Vec<Version>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let versions = actor.app.store.versions(repository.id, package).await?;
    if versions.is_empty() { Err(ApiError::from(&catalogue::NOT_FOUND)) } else { Ok(versions) }
}

/// Checks that the repository lists a package of this name; otherwise 404 `not_found`.
pub(super) async fn known(actor: &Actor, repository: &RepositoryRow, package: &str) -> Result<(), ApiError> {
    let found = actor.app.store.package_summaries(repository.id, vec![package.to_owned()]).await?;
    if found.iter().any(|one| one.versions > 0) { Ok(()) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

/// Version with all its details.
#[derive(Debug)]
pub struct VersionPage {
    pub repository: RepositoryRow,
    pub details: VersionDetails,
    pub install: Vec<InstallText>,
    /// Presentation by its plugin; empty if the plugin presents nothing or its call failed.
    pub presented: Presentation,
    /// Signed statements about it and its files, with their verdicts.
    pub attestations: Vec<Attestation>,
    /// Bills of materials that were published with it.
    pub documents: Vec<VersionDocument>,
    /// Advisories about it, the most severe first.
    pub advisories: Vec<Mark>,
}

/// Returns a version with all its details, without those that its plugin cannot present. 404
/// `not_found` if it does not exist. Needs read access to the repository.
pub async fn version(actor: &Actor, id: &str, package: &str, version: &str) -> Result<VersionPage, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let details = actor.app.store.version_details(repository.id, package, version).await?;
    let details = details.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let attestations = actor.app.store.attestations_of(repository.id, package, version).await?;
    let documents = actor.app.store.documents_of(repository.id, package, version).await?;
    let numbers = [version.to_owned()];
    let advisories = advisories::of_versions(actor, &repository, package, &numbers).await?;
    let advisories = advisories.into_iter().flatten().collect();
    let Some(plugin) = loaded::plugin_of(&actor.app, &repository)? else {
        let (install, presented) = (Vec::new(), Presentation::default());
        return Ok(VersionPage {
            repository,
            details,
            install,
            presented,
            attestations,
            documents,
            advisories,
        });
    };
    let address = repositories::address(actor, &repository).await?;
    let install = install(plugin.description(), &repository, &address, &details);
    let presented = present(actor, &repository, &plugin, package, version).await?;
    Ok(VersionPage { repository, details, install, presented, attestations, documents, advisories })
}

/// Bill of materials of a version, with its bytes.
#[derive(Debug)]
pub struct FoundDocument {
    pub document: VersionDocument,
    pub blob: Blob,
}

/// Returns a bill of materials of a version by its digest. 404 `not_found` if it does not exist, or
/// if no record refers to its bytes any longer. Needs read access to the repository.
pub async fn document(
    actor: &Actor,
    id: &str,
    package: &str,
    version: &str,
    digest: &str,
) -> Result<FoundDocument, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let missing = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = digest.parse::<Digest>().ok().and_then(|digest| digest.sha256()).ok_or_else(missing)?;
    let documents = actor.app.store.documents_of(repository.id, package, version).await?;
    let document = documents.into_iter().find(|one| one.sha256 == sha256).ok_or_else(missing)?;
    let blob = actor.app.store.blob(repository.id, sha256).await?.ok_or_else(missing)?;
    Ok(FoundDocument { document, blob })
}

/// Calls the plugin to present a version. A failed call is logged, and the page lacks the
/// presentation.
async fn present(
    actor: &Actor,
    repository: &RepositoryRow,
    plugin: &Plugin,
    package: &str,
    version: &str,
) -> Result<Presentation, ApiError> {
    let head = RequestHead { request_id: actor.request_id.as_str().into(), ..RequestHead::default() };
    let target = Some(view(repository, plugin.description()));
    let call = PluginCall { target, ..PluginCall::new(Arc::new(head), Action::Read) };
    match plugin.present_version(call, package, version).await {
        Ok(Ok(presented)) => Ok(presented),
        Ok(Err(_)) | Err(CallError::NotOffered(_)) => Ok(Presentation::default()),
        Err(CallError::Store(error)) if !matches!(error, StoreError::Corrupt(_)) => {
            Err(ApiError::from(error))
        }
        Err(error) => {
            tracing::warn!(format = repository.format, package, version, %error, "presenting a version failed");
            Ok(Presentation::default())
        }
    }
}
