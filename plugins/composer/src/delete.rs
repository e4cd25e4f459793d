//! Deletion of a version. Its number stays marked as used.

use crate::records;
use crate::version::Version;
use crate::{busy, name};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, VersionId,
};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let name = name::of(params);
    Ok(name::about(Intent::delete(), &name).subject(format!("{name} {}", params.joined("version"))))
}

/// `DELETE /packages/VENDOR/PACKAGE/VERSION`.
pub(crate) fn version(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    remove(cx.target()?, &name::of(params), &params.joined("version"))?;
    Ok(Response::no_content())
}

/// Removes a version.
///
/// # Errors
/// 404 if there is no such version.
pub(crate) fn remove(repository: &Repository, name: &str, version: &str) -> Result<(), Failure> {
    let key = key_of(name, version)?;
    repository.update(busy, |change| {
        let record = records::find(repository, name, &key, version)?;
        let record = record.ok_or_else(|| missing(name, version))?;
        change.remove(&record.key, Expectation::Revision(record.revision));
        let used = records::used(name, &key);
        if record.key == records::version(name, &key) {
            change.require(&used, Expectation::Anything);
        } else {
            // An earlier release of this plugin stored this version under another key, and marked
            // only that key as used.
            change.put_json(&used, &true, Expectation::Anything, &[])?;
        }
        change.hide(&VersionId::new(name, record.value.version));
        Ok(())
    })?;
    Ok(())
}

/// The key of a version, which is the same for all its spellings.
///
/// # Errors
/// 404 for an invalid name or version.
pub(crate) fn key_of(name: &str, version: &str) -> Result<String, Failure> {
    let parsed = Version::parse(version).filter(|_| name::is_name(name));
    parsed.map(|version| version.key()).ok_or_else(|| missing(name, version))
}

pub(crate) fn missing(name: &str, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of {name} in this repository"))
}
