//! Packages of hosted repositories.

use crate::name::PackageName;
use crate::packument::{Rendering, Summary};
use crate::pieces;
use crate::readme::PackageReadme;
use crate::records::{self, PackageRecord, VersionRecord};
use crate::version_content::VersionContent;
use packhouse_sdk::{Entry, Error, Repository};
use std::collections::BTreeMap;

/// Adds all versions of a package to a packument. `alone` is true if no other repository adds
/// versions to the packument.
pub(crate) fn add(
    repository: &Repository,
    name: &PackageName,
    package: Entry<PackageRecord>,
    alone: bool,
    rendering: &mut Rendering<'_>,
) -> Result<(), Error> {
    let PackageRecord { tags, created, modified, maintainers } = package.value;
    let latest = tags.get("latest").filter(|_| rendering.shows_readme());
    let readme = latest.map(|latest| PackageReadme::find(repository, name, latest)).transpose()?.flatten();
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
        // `runs` divides the versions into runs of neighbours, and reads only keys. If there are
        // many versions, `pieces::add` builds the packument from pieces, one for each run. It reads
        // the records of a run only if the host has not cached its piece.
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
        rendering.add(number, &VersionContent::of(VersionRecord::read(&key, value)?, deprecated))?;
    }
    Ok(())
}

/// Returns one version, or `None` if the repository does not have it.
pub(crate) fn version(
    repository: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<VersionContent>, Error> {
    let Some(version) = VersionRecord::find(repository, name, number)? else { return Ok(None) };
    let deprecated = repository.get(&records::deprecation(name, number))?;
    Ok(Some(VersionContent::of(version, deprecated.map(|entry| records::text(entry.value)))))
}

/// Returns the deprecation messages by version number.
pub(crate) fn deprecations(
    repository: &Repository,
    name: &PackageName,
) -> Result<BTreeMap<String, String>, Error> {
    let prefix = records::deprecations(name);
    let number = |key: &str| key.get(prefix.len()..).unwrap_or_default().to_owned();
    repository
        .scan(&prefix)
        .map(|entry| entry.map(|entry| (number(&entry.key), records::text(entry.value))))
        .collect()
}
