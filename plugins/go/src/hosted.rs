//! What was published here.

use crate::address::Part;
use crate::module::Module;
use crate::records::{self, Info, VersionRecord};
use crate::version::Version;
use packhouse_sdk::{Failure, Repository, Response};

/// All versions of a module; none where there is none.
pub(crate) fn versions(repository: &Repository, module: &Module) -> Result<Option<Vec<Version>>, Failure> {
    let prefix = records::versions(module);
    let mut found = Vec::new();
    for key in repository.keys(&prefix) {
        found.extend(Version::new(key?.get(prefix.len()..).unwrap_or_default()));
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// What is said of the version that is asked for by no number.
pub(crate) fn latest(repository: &Repository, module: &Module) -> Result<Option<Info>, Failure> {
    let all = versions(repository, module)?.unwrap_or_default();
    let Some(best) = all.iter().max_by(|one, other| one.rank().cmp(&other.rank())) else { return Ok(None) };
    let record = VersionRecord::find(repository, module, best)?;
    Ok(record.map(|record| Info::new(best, record.value.time)))
}

/// A file of a version.
pub(crate) fn file(
    repository: &Repository,
    module: &Module,
    version: &Version,
    part: Part,
) -> Result<Option<Response>, Failure> {
    let Some(entry) = VersionRecord::find(repository, module, version)? else { return Ok(None) };
    let record = entry.value;
    let response = match part {
        Part::Info => Response::json(&Info::new(version, record.time))?,
        Part::Mod => Response::blob(repository.recorded_blob(&record.go_mod)?)
            .content_type("text/plain; charset=utf-8"),
        Part::Zip => Response::blob(repository.recorded_blob(&record.zip)?).content_type("application/zip"),
    };
    Ok(Some(response.immutable()))
}
