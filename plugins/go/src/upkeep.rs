//! Interfaces for the management API, for retention and for the portal.

use crate::gomod::{GoMod, Requirement};
use crate::module::Module;
use crate::records::{self, VersionRecord, missing};
use crate::version::Version;
use crate::{Go, busy, module_zip};
use packhouse_sdk::{
    Context, Dependency, Expectation, Failure, Needed, Present, Presentation, ReadAt, Readme, Repository,
    Retention, Upkeep, VersionFacts, VersionId,
};

/// Maximum bytes of a README that the portal shows.
const README: u64 = 1 << 20;
/// Maximum bytes of a go.mod that is parsed here. A larger go.mod is treated as empty.
const GO_MOD: u64 = 1 << 20;
/// Maximum number of dependencies that are reported for one version.
const MAX_NEEDS: usize = 1000;

/// Parses an identifier of the host. Returns `None` if the name or the version is invalid.
fn parse_id(id: &VersionId) -> Option<(Module, Version)> {
    Some((Module::new(&id.name)?, Version::new(&id.version)?))
}

fn version_missing(id: &VersionId) -> Failure {
    missing(&format!("{}@{}", id.name, id.version))
}

impl Upkeep for Go {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let (repository, (module, version)) =
            (cx.target()?, parse_id(id).ok_or_else(|| version_missing(id))?);
        repository.update(busy, |change| {
            let entry =
                VersionRecord::find(repository, &module, &version)?.ok_or_else(|| version_missing(id))?;
            change.remove(&entry.key, Expectation::Revision(entry.revision));
            change.put(&records::deleted(&module, &version), b"", Expectation::Anything, &[]);
            change.hide(id);
            Ok(())
        })?;
        Ok(())
    }

    fn mark_version(_cx: &Context, _id: &VersionId, _state: &str, _reason: &str) -> Result<(), Failure> {
        let text = "The author of a module retracts a version in the go.mod of a later version; publish that later version";
        Err(Failure::new(405, "not_supported", text))
    }
}

impl Retention for Go {
    /// Reports the requirements of each version. Retention keeps a version that another version
    /// requires, because the go command reads the go.mod of every required version.
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        let judge = |id: &VersionId| {
            let Some((module, version)) = parse_id(id) else { return Ok(None) };
            let Some(entry) = VersionRecord::find(repository, &module, &version)? else { return Ok(None) };
            let needs = go_mod(repository, &entry.value)?.requires.into_iter();
            let needs = needs.take(MAX_NEEDS).map(|one| Needed::new(one.path, one.version)).collect();
            Ok(Some(VersionFacts {
                prerelease: Some(version.is_prerelease()),
                needs,
                ..VersionFacts::default()
            }))
        };
        ids.iter().map(judge).collect()
    }
}

impl Present for Go {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let (repository, (module, version)) =
            (cx.target()?, parse_id(id).ok_or_else(|| version_missing(id))?);
        let Some(entry) = VersionRecord::find(repository, &module, &version)? else {
            return if repository.is_proxy() {
                Ok(Presentation::default())
            } else {
                Err(version_missing(id))
            };
        };
        let zip = repository.recorded_blob(&entry.value.zip)?;
        let readme = module_zip::readme(&zip, &module, &version, README).map(|(name, text)| match name {
            name if name.ends_with(".md") => Readme::markdown(text),
            name if name.ends_with(".rst") => Readme::restructured(text),
            _ => Readme::plain(text),
        });
        let dependencies = go_mod(repository, &entry.value)?.requires.into_iter().map(needed).collect();
        Ok(Presentation { readme, dependencies, ..Presentation::default() })
    }
}

fn go_mod(repository: &Repository, record: &VersionRecord) -> Result<GoMod, Failure> {
    let blob = repository.recorded_blob(&record.go_mod)?;
    if blob.size()? > GO_MOD {
        return Ok(GoMod::default());
    }
    Ok(GoMod::read(&String::from_utf8_lossy(&blob.read_all(GO_MOD)?)))
}

fn needed(one: Requirement) -> Dependency {
    let group = if one.indirect { "indirect" } else { "" };
    Dependency::new(one.path, one.version, group)
}
