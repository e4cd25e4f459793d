//! Interface for retention: reports which versions have a tag, and which are pre-releases.

use crate::name::PackageName;
use crate::records::{self, PackageRecord};
use crate::{Npm, version};
use packhouse_sdk::{Context, Failure, Repository, Retention, VersionFacts, VersionId};
use std::collections::BTreeSet;

impl Retention for Npm {
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        // The versions of one package are adjacent in `ids`, so the loop reads the tags of each
        // package once.
        let mut tags: (String, BTreeSet<String>) = Default::default();
        let mut facts = Vec::with_capacity(ids.len());
        for id in ids {
            if tags.0 != id.name {
                tags = (id.name.clone(), tagged(repository, &id.name)?);
            }
            facts.push(judge(repository, id, &tags.1)?);
        }
        Ok(facts)
    }
}

fn judge(
    repository: &Repository,
    id: &VersionId,
    tagged: &BTreeSet<String>,
) -> Result<Option<VersionFacts>, Failure> {
    let Some(name) = PackageName::new(&id.name) else { return Ok(None) };
    if repository.keys(records::version(&name, &id.version)).page(1).next().transpose()?.is_none() {
        return Ok(None);
    }
    Ok(Some(VersionFacts {
        tagged: Some(tagged.contains(&id.version)),
        prerelease: version::is_prerelease(&id.version),
        ..VersionFacts::default()
    }))
}

/// Returns the versions of a package that have a tag.
fn tagged(repository: &Repository, name: &str) -> Result<BTreeSet<String>, Failure> {
    let Some(name) = PackageName::new(name) else { return Ok(BTreeSet::new()) };
    let package = PackageRecord::find(repository, &name)?;
    Ok(package.map(|package| package.value.tags.into_values().collect()).unwrap_or_default())
}
