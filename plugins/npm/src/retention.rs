//! What retention asks of the format: which versions a tag names, and which are pre-releases.

use crate::name::Name;
use crate::records::{self, Package};
use crate::{Npm, version};
use packhouse_sdk::{Context, Failure, Repository, Retention, VersionFacts, VersionId};
use std::collections::BTreeSet;

impl Retention for Npm {
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        // Versions of one package come together: its tags are read once.
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
    let Some(name) = Name::new(&id.name) else { return Ok(None) };
    if repository.keys(records::version(&name, &id.version)).page(1).next().transpose()?.is_none() {
        return Ok(None);
    }
    Ok(Some(VersionFacts {
        tagged: Some(tagged.contains(&id.version)),
        prerelease: version::is_prerelease(&id.version),
        ..VersionFacts::default()
    }))
}

/// The versions that a package's tags name.
fn tagged(repository: &Repository, name: &str) -> Result<BTreeSet<String>, Failure> {
    let Some(name) = Name::new(name) else { return Ok(BTreeSet::new()) };
    let package = Package::find(repository, &name)?;
    Ok(package.map(|package| package.value.tags.into_values().collect()).unwrap_or_default())
}
