//! `PUT MODULE/@v/VERSION.zip`: publishes a version whose zip the go command would accept.

use crate::address::{Address, Endpoint, FileKind, path};
use crate::module::Module;
use crate::records::{self, VersionRecord};
use crate::version::Version;
use crate::{FILE_LIMIT, busy, module_zip};
use packhouse_sdk::{
    Context, Entry, Expectation, Failure, Intent, Outcome, Params, Redeploy, Request, Response, Settings,
    Step, Transaction, Version as ListedVersion,
};

/// Returns the module and version of the uploaded zip.
fn parse_target(request: &Request) -> Result<(Module, Version), Failure> {
    let refused = |text: &str| Err(Failure::new(400, "invalid_path", text));
    let Ok(Address { module, endpoint: Endpoint::File(version, kind) }) = Address::of(request) else {
        return refused(
            "Upload a module to MODULE/@v/VERSION.zip. VERSION looks like v1.2.3, and each capital letter is written as ! and the small letter",
        );
    };
    if kind != FileKind::Zip {
        return refused("Only the zip can be uploaded; go.mod and the time are taken from it");
    }
    if !version.fits(&module) {
        let text = format!(
            "The module {module} cannot have the version {version}: from v2 on, the path ends with the major version, as in /v2"
        );
        return Err(Failure::new(400, "invalid_version", text));
    }
    Ok((module, version))
}

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let (module, version) = parse_target(request)?;
    let intent = Intent::publish().subject(format!("{module}@{version}"));
    Ok(intent.about_package(module.as_str()).body(FILE_LIMIT))
}

/// Refuses to publish an existing version before the client sends the zip. If the repository allows
/// identical uploads, accepts the request here; `put` later compares the bytes.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let ((module, version), repository) = (parse_target(request)?, cx.target()?);
    let identical = Settings::of(repository)?.redeploy == Redeploy::Identical;
    let there = VersionRecord::find(repository, &module, &version)?;
    if there.is_some() && !identical { Err(exists(&module, &version)) } else { Ok(()) }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let ((module, version), repository, zip) =
        (parse_target(request)?, cx.target()?, request.planned_body()?);
    let settings = Settings::of(repository)?;
    let contents = module_zip::read(&zip, &module, &version)?;
    let go_mod = cx.write_blob(&contents.go_mod)?;
    let time = version.commit_time().unwrap_or_else(|| cx.now());
    let record = VersionRecord { zip: zip.sha256()?, size: zip.size()?, go_mod: go_mod.sha256()?, time };
    repository.update_if_needed(busy, |change| {
        if let Some(Outcome::UnknownBlobs(_)) = change.previous() {
            return Err(Failure::internal("a stored blob is missing"));
        }
        if let Some(there) = VersionRecord::find(repository, &module, &version)? {
            let same = there.value.zip == record.zip && settings.redeploy == Redeploy::Identical;
            return if same { Ok(Step::Done(Response::created())) } else { Err(exists(&module, &version)) };
        }
        let deleted = repository.get(&records::deleted(&module, &version))?;
        if deleted.is_some() && !settings.republish_deleted {
            let text = format!(
                "{module}@{version} was deleted here, and its number is not used again; publish a new version"
            );
            return Err(Failure::already_exists(text));
        }
        repository.keep(&zip)?;
        repository.keep(&go_mod)?;
        fill(change, &module, &version, &record, deleted)?;
        Ok(Step::Commit(Response::created()))
    })
}

/// Adds the record and the listed version to the commit. Removes the record of an earlier deletion.
fn fill(
    change: &mut Transaction,
    module: &Module,
    version: &Version,
    record: &VersionRecord,
    deleted: Option<Entry>,
) -> Result<(), Failure> {
    change.put_json(&records::version(module, version), record, Expectation::Absent, &record.blobs())?;
    let key = records::deleted(module, version);
    match deleted {
        Some(entry) => change.remove(&key, Expectation::Revision(entry.revision)),
        None => change.require(&key, Expectation::Absent),
    };
    let file = path(module, version, FileKind::Zip);
    change.show(&ListedVersion::new(module.as_str(), version.as_str()).file(
        file,
        record.zip.clone(),
        record.size,
    ));
    Ok(())
}

fn exists(module: &Module, version: &Version) -> Failure {
    Failure::already_exists(format!(
        "{module}@{version} is published already and cannot be replaced; publish a new version"
    ))
}
