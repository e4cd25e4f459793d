//! Reads project data that several documents need: names, yanks, and the number of files.

use crate::records::{self, Yanked};
use packhouse_sdk::{Context, Error, Failure, Repository};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of files of a large project, whose page is cheaper to build from cached pieces.
const MANY: usize = 64;

/// Returns the only repository that may have a project, if it is hosted and has many files of the
/// project. Any proxy may have the project.
pub(crate) fn only_large<'a>(cx: &'a Context, name: &str) -> Result<Option<&'a Repository>, Failure> {
    let mut found = None;
    for repository in cx.sources()? {
        let has = repository.is_proxy() || repository.get(&records::project(name))?.is_some();
        if has && found.replace(repository).is_some() {
            return Ok(None);
        }
    }
    let Some(repository) = found.filter(|repository| !repository.is_proxy()) else { return Ok(None) };
    Ok(has_many(repository, name)?.then_some(repository))
}

/// Returns true if a hosted repository has many files of a project.
pub(crate) fn has_many(repository: &Repository, name: &str) -> Result<bool, Error> {
    // Only the keys are read here. For a small project, the records are read later, when its page
    // is rendered.
    let keys = repository.keys(records::files(name)).page(MANY as u32).take(MANY);
    Ok(keys.collect::<Result<Vec<_>, _>>()?.len() == MANY)
}

/// Returns the reasons of yanked versions, by the version's key.
pub(crate) fn yanked(repository: &Repository, name: &str) -> Result<BTreeMap<String, String>, Error> {
    let prefix = records::all_yanked(name);
    let mut yanked = BTreeMap::new();
    for entry in repository.scan(&prefix) {
        let entry = entry?;
        let key = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        yanked.insert(key, entry.json::<Yanked>()?.value.reason);
    }
    Ok(yanked)
}

/// Returns the names of all projects, in the order of their bytes. A proxy contributes the projects
/// of which it has fetched a file, except withheld projects.
pub(crate) fn names(cx: &Context) -> Result<Vec<String>, Failure> {
    let mut names = BTreeSet::new();
    for repository in cx.sources()? {
        let is_proxy = repository.is_proxy();
        let prefix = if is_proxy { "f/" } else { "p/" };
        let keys = repository.keys(prefix).delimiter("/");
        let name = |key: String| key.get(prefix.len()..).unwrap_or_default().trim_end_matches('/').to_owned();
        let mut own = keys.map(|key| key.map(name)).collect::<Result<Vec<String>, Error>>()?;
        if is_proxy {
            let withheld = repository.withheld(&own)?;
            own.retain(|name| !withheld.contains(name));
        }
        names.extend(own);
    }
    Ok(names.into_iter().collect())
}
