//! What a repository holds: packages, and the versions of one. The same for every format, from what its plugin shows.

use packhouse_store::{PackageSummary, Version};
use packhouse_wire::catalogue;

use super::{Actor, repositories};
use crate::error::ApiError;

/// Which packages are wanted.
#[derive(Clone, Debug)]
pub enum Search {
    /// All, by name, behind this one.
    Names {
        /// Empty for the first page.
        after: String,
    },
    /// Those that match, the best match first.
    Words {
        /// What is looked for.
        words: String,
        /// How many matches are left out.
        offset: u32,
    },
}

/// A page of packages.
pub struct Packages {
    /// What is on it.
    pub summaries: Vec<PackageSummary>,
    /// Where the next begins: a name, or an offset.
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
        Search::Words { words, offset } => {
            let found = store.search(repository.id, &words, offset, limit).await?;
            let end = offset.saturating_add(u32::try_from(found.names.len()).unwrap_or(u32::MAX));
            let next = (u64::from(end) < found.total).then(|| end.to_string());
            (found.names, next)
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
