//! What a hosted repository knows of a package.

use crate::name::Name;
use crate::packument::{Rendering, Summary};
use crate::pieces;
use crate::readme::Readme;
use crate::records::{self, Package, Version};
use crate::version_piece::Piece;
use packhouse_sdk::{Entry, Error, Repository};
use std::collections::BTreeMap;

/// Adds all versions of a package to a packument; `alone` where no other repository adds to it.
pub(crate) fn add(
    repository: &Repository,
    name: &Name,
    package: Entry<Package>,
    alone: bool,
    rendering: &mut Rendering<'_>,
) -> Result<(), Error> {
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
    let prefix = records::versions(name);
    if alone {
        // Their keys alone: most packages have few, and what stands in the records of many is remembered.
        let versions = repository.runs(&prefix)?;
        if pieces::count(&versions) >= pieces::MANY {
            return pieces::add(repository, name, &versions, rendering);
        }
    }
    let mut deprecations = deprecations(repository, name)?;
    for entry in repository.scan(&prefix) {
        let Entry { key, value, .. } = entry?;
        let number = key.get(prefix.len()..).unwrap_or_default();
        let deprecated = deprecations.remove(number);
        rendering.add(number, &Piece::of(Version::read(&key, value)?, deprecated))?;
    }
    Ok(())
}

/// One version.
pub(crate) fn version(repository: &Repository, name: &Name, number: &str) -> Result<Option<Piece>, Error> {
    let Some(version) = Version::find(repository, name, number)? else { return Ok(None) };
    let deprecated = repository.get(&records::deprecation(name, number))?;
    Ok(Some(Piece::of(version, deprecated.map(|entry| records::text(entry.value)))))
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
