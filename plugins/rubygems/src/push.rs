//! `gem push`: a gem, once all that is said of it agrees.

use crate::records::{self, GemRecord, Holder};
use crate::{FILE_LIMIT, archive, busy};
use packhouse_sdk::{
    Context, Entry, Expectation, Failure, Intent, Params, Redeploy, Repository, Request, Response, Settings,
    Step,
};

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    if request.header("content-type").is_some_and(|sent| sent.starts_with("multipart/")) {
        let text = "This repository keeps no attestations of gems: push without --attestation";
        return Err(Failure::new(415, "attestations_not_supported", text));
    }
    Ok(Intent::publish().body(FILE_LIMIT).digests(&["sha512"]))
}

pub(crate) fn post(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, gem) = (cx.target()?, request.planned_body()?);
    let spec = archive::inspect(&gem)?;
    let settings = Settings::of(repository)?;
    let sha256 = repository.keep(&gem)?;
    let said = format!("Successfully registered gem: {} ({})", spec.name, spec.number());
    let record = GemRecord { spec, sha256, size: gem.size()?, time: cx.now(), yanked: None };
    commit(repository, &settings, &record)?;
    Ok(Response::text(said))
}

fn commit(repository: &Repository, settings: &Settings, record: &GemRecord) -> Result<(), Failure> {
    let (name, number) = (&record.spec.name, record.spec.number());
    let (key, holder_key) = (records::version(name, &number), records::file(&record.spec.stem()));
    let holder = Holder { name: name.clone(), number };
    repository.update_if_needed(busy, |change| {
        let there = repository.get_json::<GemRecord>(&key)?;
        let held = repository.get_json::<Holder>(&holder_key)?;
        if let Some(there) = &there {
            return repeated(settings, there, record).map(Step::Done);
        }
        free(settings, held.as_ref(), &holder)?;
        change.put_json(&key, record, Expectation::Absent, std::slice::from_ref(&record.sha256))?;
        change.put_json(&holder_key, &holder, Expectation::unchanged(held.as_ref()), &[])?;
        change.show(&record.shown());
        Ok(Step::Commit(()))
    })
}

fn repeated(settings: &Settings, there: &Entry<GemRecord>, record: &GemRecord) -> Result<(), Failure> {
    let there = &there.value;
    if settings.redeploy == Redeploy::Identical && there.sha256 == record.sha256 && there.yanked.is_none() {
        return Ok(());
    }
    let state = if there.yanked.is_some() { "was yanked" } else { "is there already" };
    let text = format!("{} {} {state}; push a new version", record.spec.name, record.spec.number());
    Err(Failure::already_exists(text))
}

/// Whether a file's name may be used.
fn free(settings: &Settings, held: Option<&Entry<Holder>>, mine: &Holder) -> Result<(), Failure> {
    let Some(holder) = held.map(|held| &held.value) else { return Ok(()) };
    let Holder { name, number } = holder;
    if holder != mine {
        let text = format!("The file {name}-{number}.gem is that of version {number} of the gem {name}");
        return Err(Failure::already_exists(text));
    }
    if settings.republish_deleted {
        return Ok(());
    }
    let text =
        format!("{name} {number} was deleted here, and its number is not used again; push a new version");
    Err(Failure::already_exists(text))
}
