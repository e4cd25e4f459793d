//! What a hosted repository knows of a package.

use crate::name::Name;
use crate::packument::{Piece, Rendering, Summary};
use crate::readme::Readme;
use crate::records::{self, Package, Version};
use packhouse_sdk::{Entry, Error, Repository};
use serde_json::{Map, json};
use std::collections::BTreeMap;

/// Adds all versions to a packument; false where there is no such package.
pub(crate) fn add(
    repository: &Repository,
    name: &Name,
    rendering: &mut Rendering<'_>,
) -> Result<bool, Error> {
    let Some(package) = Package::find(repository, name)? else { return Ok(false) };
    let Package { tags, created, modified, maintainers } = package.value;
    let latest = tags.get("latest").filter(|_| rendering.shows_readme());
    let readme = latest.map(|latest| Readme::of(repository, name, latest)).transpose()?.flatten();
    rendering.summary(Summary {
        tags,
        created,
        modified,
        maintainers,
        readme,
        revision: Some(package.revision),
    });
    let mut deprecations = deprecations(repository, name)?;
    let prefix = records::versions(name);
    for entry in repository.scan(&prefix) {
        let Entry { key, value, .. } = entry?;
        let number = key.get(prefix.len()..).unwrap_or_default();
        let deprecated = deprecations.remove(number);
        rendering.add(number, &piece(Version::read(&key, value)?, deprecated))?;
    }
    Ok(true)
}

/// One version.
pub(crate) fn version(repository: &Repository, name: &Name, number: &str) -> Result<Option<Piece>, Error> {
    let Some(version) = Version::find(repository, name, number)? else { return Ok(None) };
    let deprecated = repository.get(&records::deprecation(name, number))?;
    Ok(Some(piece(version, deprecated.map(|entry| records::text(entry.value)))))
}

fn piece(version: Version, deprecated: Option<String>) -> Piece {
    let Version { facts, dist, abbreviated, full } = version;
    let attestations = facts
        .provenance
        .map(|predicate| Map::from_iter([("provenance".to_owned(), json!({"predicateType": predicate}))]));
    Piece { abbreviated, full, dist, deprecated, attestations, time: facts.time }
}

/// Why versions should not be used, by number.
pub(crate) fn deprecations(repository: &Repository, name: &Name) -> Result<BTreeMap<String, String>, Error> {
    let prefix = records::deprecations(name);
    let number = |key: &str| key.get(prefix.len()..).unwrap_or_default().to_owned();
    repository
        .scan(&prefix)
        .map(|entry| entry.map(|entry| (number(&entry.key), records::text(entry.value))))
        .collect()
}
