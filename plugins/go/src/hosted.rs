//! Modules that clients published in a hosted repository.

use crate::address::FileKind;
use crate::module::Module;
use crate::records::{self, Info, VersionRecord};
use crate::version::Version;
use packhouse_sdk::{Failure, Repository, Response};

/// Returns all versions of a module, or `None` if the module has no versions.
pub(crate) fn versions(repository: &Repository, module: &Module) -> Result<Option<Vec<Version>>, Failure> {
    let prefix = records::versions(module);
    let mut found = Vec::new();
    for key in repository.keys(&prefix) {
        found.extend(Version::new(key?.get(prefix.len()..).unwrap_or_default()));
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Returns information about the version that `@latest` names.
pub(crate) fn latest(repository: &Repository, module: &Module) -> Result<Option<Info>, Failure> {
    let all = versions(repository, module)?.unwrap_or_default();
    let Some(best) = all.iter().max_by(|one, other| one.rank().cmp(&other.rank())) else { return Ok(None) };
    let record = VersionRecord::find(repository, module, best)?;
    Ok(record.map(|record| Info::new(best, record.value.time)))
}

/// Returns one file of a version, or `None` if the version does not exist.
pub(crate) fn file(
    repository: &Repository,
    module: &Module,
    version: &Version,
    kind: FileKind,
) -> Result<Option<Response>, Failure> {
    let Some(entry) = VersionRecord::find(repository, module, version)? else { return Ok(None) };
    let record = entry.value;
    let response = match kind {
        FileKind::Info => Response::json(&Info::new(version, record.time))?,
        FileKind::Mod => Response::blob(repository.recorded_blob(&record.go_mod)?)
            .content_type("text/plain; charset=utf-8"),
        FileKind::Zip => {
            Response::blob(repository.recorded_blob(&record.zip)?).content_type("application/zip")
        }
    };
    Ok(Some(response.immutable()))
}
