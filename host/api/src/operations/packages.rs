//! What a repository holds: packages, and the versions of one. The same for every format, from what its plugin shows.

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
use super::search::{self, Found, Query};
use super::{Actor, loaded, repositories};
use crate::error::ApiError;

/// Which packages are wanted.
#[derive(Clone, Debug)]
pub enum Search {
    /// All, by name, behind this one.
    Names {
        /// Empty for the first page.
        after: String,
    },
    /// Those that match: the one of that name first, then names that begin with the words, then the others, each by name.
    Words {
        /// What is looked for.
        words: String,
        /// Behind this place: what an earlier page gave as `next`.
        after: Option<String>,
    },
}

/// A page of packages.
pub struct Packages {
    /// What is on it.
    pub summaries: Vec<PackageSummary>,
    /// Where the next begins: a name, or a place.
    pub next: Option<String>,
}

/// At most `limit` packages of the repository of this id. Needs read there.
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
            // That it may be read has been judged.
            let readable = Readable { all: true, these: Vec::new() };
            let (format, repository) = (None, Some(repository.id));
            let query = Query { text: words, format, repository, after, limit, readable };
            let Found { packages, next } = search::find(actor, query).await?;
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

/// The versions of a package, the newest first: 404 `not_found` where there is none. Needs read there.
pub async fn versions(actor: &Actor, id: &str, package: &str) -> Result<Vec<Version>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let versions = actor.app.store.versions(repository.id, package).await?;
    if versions.is_empty() { Err(ApiError::from(&catalogue::NOT_FOUND)) } else { Ok(versions) }
}

/// 404 `not_found` where the repository shows no package of this name.
pub(super) async fn known(actor: &Actor, repository: &RepositoryRow, package: &str) -> Result<(), ApiError> {
    let found = actor.app.store.package_summaries(repository.id, vec![package.to_owned()]).await?;
    if found.iter().any(|one| one.versions > 0) { Ok(()) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

/// A version with all that people are shown of it.
#[derive(Debug)]
pub struct VersionPage {
    /// Where it is.
    pub repository: RepositoryRow,
    /// What is shown and counted of it.
    pub details: VersionDetails,
    /// How clients install it.
    pub install: Vec<InstallText>,
    /// What its format makes of it; empty where the format presents nothing, or could not.
    pub presented: Presentation,
    /// Signed statements about it and its files, with what they are worth.
    pub attestations: Vec<Attestation>,
    /// Documents that came with it and describe what it is made of.
    pub documents: Vec<VersionDocument>,
    /// What is known to be wrong with it, the worst first.
    pub advisories: Vec<Mark>,
}

/// A version with all that people are shown of it: 404 `not_found` where it is not. What its plugin cannot present is left out. Needs
/// read there.
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

/// A document that came with a version, with its bytes.
#[derive(Debug)]
pub struct FoundDocument {
    /// What is known of it.
    pub document: VersionDocument,
    /// Its bytes.
    pub blob: Blob,
}

/// The document of this digest that came with a version: 404 `not_found` where there is none, or no record holds its bytes any more.
/// Needs read there.
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

/// What the plugin shows of a version. A call that fails is in the log, and costs the page what it would have shown.
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
            tracing::warn!(format = repository.format, package, version, %error, "a version could not be presented");
            Ok(Presentation::default())
        }
    }
}
