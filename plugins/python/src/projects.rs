//! Projects as the repositories have them: read from records, or from an upstream's pages.

use crate::records::{self, Yanked};
use packhouse_sdk::{Context, Error, Failure, Repository};
use std::collections::{BTreeMap, BTreeSet};

/// A project with this many files is worth the keeping of pieces.
const MANY: usize = 64;

/// The hosted repository that alone has a project, where it has many files of it.
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

/// Whether a hosted repository has many files of a project.
pub(crate) fn has_many(repository: &Repository, name: &str) -> Result<bool, Error> {
    // Their keys alone: the records of the few are read when the page is made of them.
    let keys = repository.keys(records::files(name)).page(MANY as u32).take(MANY);
    Ok(keys.collect::<Result<Vec<_>, _>>()?.len() == MANY)
}

/// Reasons by the key of the version.
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

/// Names of all projects, in the order of their bytes. A proxy's are those of which it has a file and that it may serve.
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
