//! `PUT MODULE/@v/VERSION.zip`: a version, once its zip is one that the go command would take.

use crate::address::{Address, Asked, Part, path};
use crate::module::Module;
use crate::records::{self, VersionRecord};
use crate::version::Version;
use crate::{FILE_LIMIT, busy, module_zip};
use packhouse_sdk::{
    Context, Entry, Expectation, Failure, Intent, Outcome, Params, Redeploy, Request, Response, Settings,
    Step, Transaction, Version as Shown,
};

/// Module and version of the zip that is put.
fn named(request: &Request) -> Result<(Module, Version), Failure> {
    let refused = |text: &str| Err(Failure::new(400, "invalid_path", text));
    let Ok(Address { module, asked: Asked::File(version, part) }) = Address::of(request) else {
        return refused(
            "A module is put at MODULE/@v/VERSION.zip, where VERSION is like v1.2.3 and a capital of either is ! and its letter",
        );
    };
    if part != Part::Zip {
        return refused("Only the zip is put: go.mod and the time are taken from it");
    }
    if !version.fits(&module) {
        let text = format!(
            "The module {module} cannot have the version {version}: from v2 on the path ends with the major version, as in /v2"
        );
        return Err(Failure::new(400, "invalid_version", text));
    }
    Ok((module, version))
}

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let (module, version) = named(request)?;
    let intent = Intent::publish().subject(format!("{module}@{version}"));
    Ok(intent.about_package(module.as_str()).body(FILE_LIMIT))
}

/// Refuses before the bytes what is there already.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let ((module, version), repository) = (named(request)?, cx.target()?);
    let identical = Settings::of(repository)?.redeploy == Redeploy::Identical;
    let there = VersionRecord::find(repository, &module, &version)?;
    if there.is_some() && !identical { Err(exists(&module, &version)) } else { Ok(()) }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let ((module, version), repository, zip) = (named(request)?, cx.target()?, request.planned_body()?);
    let settings = Settings::of(repository)?;
    let contents = module_zip::read(&zip, &module, &version)?;
    let go_mod = cx.write_blob(&contents.go_mod)?;
    let time = version.commit_time().unwrap_or_else(|| cx.now());
    let record = VersionRecord { zip: zip.sha256()?, size: zip.size()?, go_mod: go_mod.sha256()?, time };
    repository.update_if_needed(busy, |change| {
        if let Some(Outcome::UnknownBlobs(_)) = change.previous() {
            return Err(Failure::internal("a blob that was kept is not held"));
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

/// The version and what is shown of it appear together.
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
    let file = path(module, version, Part::Zip);
    change.show(&Shown::new(module.as_str(), version.as_str()).file(file, record.zip.clone(), record.size));
    Ok(())
}

fn exists(module: &Module, version: &Version) -> Failure {
    Failure::already_exists(format!(
        "{module}@{version} is published already and cannot be replaced; publish a new version"
    ))
}
