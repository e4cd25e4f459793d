//! Search in all repositories that the actor may read.

use packhouse_store::{FoundPackage, Readable, RepositoryId, SearchPlace, SearchQuery};

use super::Actor;
use super::advisories::{self, Mark};
use crate::error::ApiError;

/// Repositories that are read in one statement.
const READ_AT_ONCE: u32 = 500;

#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// Words that must all occur in name, summary or keywords; empty for all packages.
    pub text: String,
    /// Only repositories of this format.
    pub format: Option<String>,
    /// Unchecked id of the only repository to search.
    pub repository: Option<String>,
    /// The [`SearchPage::next`] of the previous page.
    pub after: Option<String>,
    pub limit: u32,
}

#[derive(Debug)]
pub struct SearchPage {
    pub packages: Vec<FoundPackage>,
    /// Start of the next page.
    pub next: Option<String>,
}

/// Returns the most severe advisory about the latest version of each of these packages, in their
/// order.
pub async fn worst(actor: &Actor, packages: &[FoundPackage]) -> Result<Vec<Option<Mark>>, ApiError> {
    let mut worst = Vec::with_capacity(packages.len());
    for found in packages {
        let latest = found.latest.as_slice();
        let marks = advisories::of_format(actor, &found.format, &found.place.name, latest).await?;
        worst.push(marks.into_iter().flatten().next());
    }
    Ok(worst)
}

/// Searches all repositories that the actor may read. The package named like the text comes first,
/// then names that begin with it, then the others, each by name. An unknown or unreadable
/// repository yields no packages. 400 `invalid_request` for an invalid `after`.
pub async fn packages(actor: &Actor, request: SearchRequest) -> Result<SearchPage, ApiError> {
    actor.judged_own();
    let SearchRequest { text, format, repository, after, limit } = request;
    let repository = match repository.as_deref().map(str::parse::<RepositoryId>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Ok(SearchPage { packages: Vec::new(), next: None }),
    };
    let readable = readable(actor).await?;
    find(actor, Query { text, format, repository, after, limit, readable }).await
}

pub(super) struct Query {
    pub(super) text: String,
    pub(super) format: Option<String>,
    pub(super) repository: Option<RepositoryId>,
    pub(super) after: Option<String>,
    pub(super) limit: u32,
    pub(super) readable: Readable,
}

/// Reads a page of results, and one more to know whether another page follows.
pub(super) async fn find(actor: &Actor, query: Query) -> Result<SearchPage, ApiError> {
    let Query { text, format, repository, after, limit, readable } = query;
    let after = after.as_deref().map(read_place).transpose()?;
    let organization = actor.organization();
    let further = limit.saturating_add(1);
    let query = SearchQuery { organization, readable, text, format, repository, after, limit: further };
    let mut packages = actor.app.store.search_packages(&query).await?;
    let more = packages.len() > limit as usize;
    packages.truncate(limit as usize);
    let next = packages.last().filter(|_| more).map(|last| write_place(&last.place));
    Ok(SearchPage { packages, next })
}

/// Repositories that the actor may read, in addition to public ones.
pub(super) async fn readable(actor: &Actor) -> Result<Readable, ApiError> {
    let permissions = actor.permissions();
    if permissions.reads_all() {
        return Ok(Readable { all: true, these: Vec::new() });
    }
    if permissions.has_name_patterns() {
        return Ok(Readable { all: false, these: readable_by_name(actor).await? });
    }
    let named = permissions.named().filter_map(|id| id.parse::<RepositoryId>().ok());
    // Without patterns of names, the name of a repository decides nothing.
    Ok(Readable { all: false, these: named.filter(|id| permissions.rights(*id, "").read).collect() })
}

/// Repositories that the actor may read, found among all repositories by their names.
async fn readable_by_name(actor: &Actor) -> Result<Vec<RepositoryId>, ApiError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = actor.app.store.list_repositories(actor.organization(), after, READ_AT_ONCE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < READ_AT_ONCE as usize;
        found.extend(page.iter().filter(|row| actor.rights_in(row).read).map(|row| row.id));
        if last {
            return Ok(found);
        }
    }
}

fn write_place(place: &SearchPlace) -> String {
    let tier = if place.beyond_prefixes { "w" } else { "p" };
    format!("{tier}.{}.{}", place.repository, place.name)
}

fn read_place(text: &str) -> Result<SearchPlace, ApiError> {
    let read = || {
        let (tier, rest) = text.split_once('.')?;
        let (repository, name) = rest.split_once('.')?;
        let beyond_prefixes = match tier {
            "p" => false,
            "w" => true,
            _ => return None,
        };
        let (repository, name) = (repository.parse().ok()?, name.replace('\0', ""));
        Some(SearchPlace { beyond_prefixes, folded: name.to_lowercase(), repository, name })
    };
    read().ok_or_else(|| ApiError::invalid("`after` must be the `next` of an earlier page."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let place = SearchPlace {
            beyond_prefixes: true,
            folded: "org.example:lib".to_owned(),
            repository: RepositoryId(12),
            name: "Org.Example:Lib".to_owned(),
        };
        assert_eq!(read_place(&write_place(&place)).unwrap(), place);
        for wrong in ["", "p", "p.12", "x.12.a", "p.a.b"] {
            assert!(read_place(wrong).is_err(), "{wrong}");
        }
    }
}
