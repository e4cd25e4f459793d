//! Interface for the management API.

use crate::name::PackageName;
use crate::records::{PackageRecord, missing_version};
use crate::{Npm, busy, change, remove};
use packhouse_sdk::{Context, Failure, Upkeep, VersionId, retry};

impl Upkeep for Npm {
    fn delete_version(cx: &Context, id: &VersionId) -> Result<(), Failure> {
        let (repository, name) = (cx.target()?, name(id)?);
        retry(busy, || {
            let package = PackageRecord::get(repository, &name)?;
            let numbers = remove::numbers(repository, &name)?;
            let (gone, left): (Vec<String>, Vec<String>) =
                numbers.into_iter().partition(|number| *number == id.version);
            if gone.is_empty() {
                return Err(missing_version(&name, &id.version));
            }
            let revision = remove::versions(cx, repository, &name, package, &gone, &left)?;
            Ok(revision.map(drop))
        })
    }

    fn mark_version(cx: &Context, id: &VersionId, state: &str, reason: &str) -> Result<(), Failure> {
        let text = match state {
            "" => None,
            "deprecated" if reason.is_empty() => Some("this version is deprecated".to_owned()),
            "deprecated" => Some(reason.to_owned()),
            other => {
                let text =
                    format!("npm has no state {other:?}; a version can only be marked as `deprecated`");
                return Err(Failure::new(405, "not_supported", text));
            }
        };
        change::deprecate(cx, &name(id)?, &id.version, text)
    }
}

/// Returns the name of a version's package.
///
/// # Errors
/// 404 if no package can have this name.
pub(crate) fn name(id: &VersionId) -> Result<PackageName, Failure> {
    PackageName::new(&id.name).ok_or_else(|| missing(&id.name))
}

fn missing(name: &str) -> Failure {
    Failure::not_found(format!("There is no package {name} in this repository"))
}
