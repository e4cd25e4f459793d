//! `cargo search`: results from hosted repositories, followed by results from upstreams.

use crate::name::Name;
use crate::proxy;
use crate::records::VersionRecord;
use crate::search_results::{FoundCrate, SearchMeta, SearchResults};
use packhouse_sdk::{Context, Failure, Output, Params, Repository, Request, Response};
use semver::Version;
use std::collections::BTreeSet;

/// Default number of crates in a response.
const DEFAULT_PAGE: u32 = 10;
/// Largest number of crates in a response.
const MAX_PAGE: u32 = 100;

pub(crate) fn search(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (words, limit) = (request.query("q").unwrap_or_default(), limit(request)?);
    let (mut all, mut names) = (SearchResults::default(), BTreeSet::new());
    let mut add = |found: SearchResults| {
        all.meta.total += found.meta.total;
        let new = |one: &FoundCrate| {
            Name::new(&one.name).is_some_and(|name| names.insert(name.as_str().to_owned()))
        };
        all.crates.extend(found.crates.into_iter().filter(new));
    };
    for source in cx.hosted()? {
        add(hosted(source, words, limit)?);
    }
    let mut left_out = cx.left_out();
    for source in cx.proxies()? {
        let found = proxy::search(cx, source, words, limit).map(Some);
        left_out.unless_failed(source, found)?.into_iter().for_each(&mut add);
    }
    all.crates.truncate(limit as usize);
    let mut out = Output::new(cx);
    out.json(&all)?;
    Ok(Response::ok().content_type("application/json").revalidate().content(out.finish()?))
}

fn limit(request: &Request) -> Result<u32, Failure> {
    let Some(limit) = request.query("per_page") else { return Ok(DEFAULT_PAGE) };
    let valid = limit.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    valid.ok_or_else(|| Failure::invalid(format!("`per_page` must be a number from 1 to {MAX_PAGE}")))
}

fn hosted(repository: &Repository, words: &str, limit: u32) -> Result<SearchResults, Failure> {
    let matches = repository.search(words, 0, limit)?;
    let mut crates = Vec::new();
    for text in matches.names {
        let Some(name) = Name::new(&text) else { continue };
        crates.extend(newest(VersionRecord::all(repository, &name)?));
    }
    Ok(SearchResults { crates, meta: SearchMeta { total: matches.total } })
}

/// Chooses the version to list for a crate. Prefers versions that are not yanked. Otherwise prefers
/// releases to pre-releases, and then the highest version.
fn newest(all: Vec<VersionRecord>) -> Option<FoundCrate> {
    let rank = |record: &VersionRecord| {
        let version = Version::parse(&record.line.vers).ok();
        (!record.line.yanked, version.as_ref().is_some_and(|version| version.pre.is_empty()), version)
    };
    let newest = all.into_iter().max_by_key(rank)?;
    Some(FoundCrate {
        name: newest.line.name,
        max_version: newest.line.vers,
        description: Some(newest.summary),
    })
}
