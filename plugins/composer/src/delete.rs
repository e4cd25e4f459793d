//! Deleting a version. Its number stays used.

use crate::name;
use crate::records::{self, PackageRecord};
use crate::{busy, version::Version};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, VersionId,
};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let (package, version) = asked(params);
    Ok(Intent::delete().subject(format!("{package} {version}")))
}

fn asked<'a>(params: &Params<'a>) -> (String, &'a str) {
    (format!("{}/{}", params.segment("vendor"), params.segment("package")), params.segment("version"))
}

pub(crate) fn delete(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (package, version) = asked(params);
    remove(cx.target()?, &package, version)?;
    Ok(Response::no_content())
}

/// Removes a version.
pub(crate) fn remove(repository: &Repository, package: &str, version: &str) -> Result<(), Failure> {
    let key = key(package, version)?;
    repository.update(busy, |change| {
        let record = repository.get_json::<PackageRecord>(&key)?.ok_or_else(|| missing(package, version))?;
        change.remove(&key, Expectation::Revision(record.revision));
        change.require(&key.replacen("v/", "d/", 1), Expectation::Anything);
        change.hide(&VersionId::new(package, &record.value.version));
        Ok(())
    })?;
    Ok(())
}

/// The key of a version's record.
pub(crate) fn key(package: &str, version: &str) -> Result<String, Failure> {
    let parsed = Version::parse(version).filter(|_| name::is_name(package));
    Ok(records::version(package, &parsed.ok_or_else(|| missing(package, version))?.key()))
}

pub(crate) fn missing(package: &str, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of {package} in this repository"))
}
