//! `gem push`: verifies the content of a gem, and then stores the gem.

use crate::records::{self, FileOwner, GemRecord};
use crate::{FILE_LIMIT, archive, busy};
use packhouse_sdk::{
    Context, Entry, Expectation, Failure, Intent, Params, Redeploy, Repository, Request, Response, Settings,
    Step,
};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    if request.header("content-type").is_some_and(|sent| sent.starts_with("multipart/")) {
        let text = "This repository does not store attestations of gems; push without --attestation";
        return Err(Failure::new(415, "attestations_not_supported", text));
    }
    Ok(Intent::publish().body(FILE_LIMIT).digests(&["sha512"]))
}

pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, gem) = (cx.target()?, request.planned_body()?);
    let spec = archive::inspect(&gem)?;
    let settings = Settings::of(repository)?;
    let sha256 = repository.keep(&gem)?;
    let text = format!("Successfully registered gem: {} ({})", spec.name, spec.number());
    let record = GemRecord { spec, sha256, size: gem.size()?, time: cx.now(), yanked: None };
    commit(repository, &settings, &record)?;
    Ok(Response::text(text))
}

fn commit(repository: &Repository, settings: &Settings, record: &GemRecord) -> Result<(), Failure> {
    let (name, number) = (&record.spec.name, record.spec.number());
    let (key, owner_key) = (records::version(name, &number), records::file(&record.spec.stem()));
    let owner = FileOwner { name: name.clone(), number };
    repository.update_if_needed(busy, |change| {
        let existing = repository.get_json::<GemRecord>(&key)?;
        let current = repository.get_json::<FileOwner>(&owner_key)?;
        if let Some(existing) = &existing {
            return check_repeated(settings, existing, record).map(Step::Done);
        }
        check_file_name(settings, current.as_ref(), &owner)?;
        change.put_json(&key, record, Expectation::Absent, std::slice::from_ref(&record.sha256))?;
        change.put_json(&owner_key, &owner, Expectation::unchanged(current.as_ref()), &[])?;
        change.show(&record.listed_version());
        Ok(Step::Commit(()))
    })
}

fn check_repeated(
    settings: &Settings,
    existing: &Entry<GemRecord>,
    record: &GemRecord,
) -> Result<(), Failure> {
    let existing = &existing.value;
    if settings.redeploy == Redeploy::Identical
        && existing.sha256 == record.sha256
        && existing.yanked.is_none()
    {
        return Ok(());
    }
    let state = if existing.yanked.is_some() { "was yanked" } else { "already exists" };
    let text = format!("{} {} {state}; push a new version", record.spec.name, record.spec.number());
    Err(Failure::already_exists(text))
}

/// Returns an error if the file name belongs to another version, or to a deleted version whose
/// number cannot be used again.
fn check_file_name(
    settings: &Settings,
    current: Option<&Entry<FileOwner>>,
    mine: &FileOwner,
) -> Result<(), Failure> {
    let Some(owner) = current.map(|current| &current.value) else { return Ok(()) };
    let FileOwner { name, number } = owner;
    if owner != mine {
        let text =
            format!("The file {name}-{number}.gem already belongs to version {number} of the gem {name}");
        return Err(Failure::already_exists(text));
    }
    if settings.republish_deleted {
        return Ok(());
    }
    let text =
        format!("{name} {number} was deleted here, and its number cannot be used again; push a new version");
    Err(Failure::already_exists(text))
}
