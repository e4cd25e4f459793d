//! `PUT` of a file, under Overwrite Protection where nothing else is set.

use crate::checksum::{Algorithm, stated};
use crate::path::{self, Target, bad};
use crate::records::{self, FileRecord};
use crate::{FILE_LIMIT, busy};
use packhouse_sdk::{
    Blob, Context, Entry, Expectation, Failure, Intent, Outcome, Params, Redeploy, Repository, Request,
    Response, Settings, Step, Transaction, Version, percent_encode,
};
use serde::Deserialize;

/// The format's own setting.
#[derive(Deserialize)]
struct Own {
    overwrite: bool,
}

/// Whether a file that is there may be replaced.
pub(crate) fn overwrites(repository: &Repository) -> Result<bool, Failure> {
    Ok(repository.settings::<Own>()?.overwrite)
}

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = Target::parse(&request.path)?;
    let Target::File(path) = target else { return Err(bad("A file's path does not end with a slash")) };
    let sums = stated(request)?;
    let sha512 = sums.iter().any(|(algorithm, _)| *algorithm == Algorithm::Sha512);
    let digests: &[&str] = if sha512 { &["sha1", "md5", "sha512"] } else { &["sha1", "md5"] };
    let package = path::package(path::split(&path).0);
    Ok(Intent::publish().subject(path.as_str()).about_package(package).body(FILE_LIMIT).digests(digests))
}

/// Refuses before the bytes what is there already. A file that may be put again is let through, unless its size tells.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let (repository, path) = (cx.target()?, request.path.join("/"));
    if overwrites(repository)? {
        return Ok(());
    }
    let Some(there) = FileRecord::find(repository, &path)? else { return Ok(()) };
    let length = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    let other_size = length.is_some_and(|length| length != there.value.size);
    let identical = Settings::of(repository)?.redeploy == Redeploy::Identical;
    if other_size || !identical { Err(exists(&path)) } else { Ok(()) }
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, path, body) = (cx.target()?, request.path.join("/"), request.planned_body()?);
    compare(&body, stated(request)?)?;
    let (stored, overwrite) = (FileRecord::of(&body, cx.now())?, overwrites(repository)?);
    let settings = Settings::of(repository)?;
    repository.update_if_needed(busy, |change| {
        if let Some(Outcome::UnknownBlobs(_)) = change.previous() {
            return Err(Failure::internal("a body that was kept is not held"));
        }
        let there = FileRecord::find(repository, &path)?;
        if let Some(there) = &there {
            let same = there.value.sha256 == stored.sha256;
            if same && (overwrite || settings.redeploy == Redeploy::Identical) {
                return Ok(Step::Done(created(&stored)));
            }
            if !overwrite {
                return Err(exists(&path));
            }
        }
        let deleted = repository.get(&records::deleted(&path))?;
        if deleted.is_some() && !overwrite && !settings.republish_deleted {
            let text =
                format!("A file {path} was deleted here, and its path is not used again; choose another one");
            return Err(Failure::already_exists(text));
        }
        repository.keep(&body)?;
        let slot = Slot { there, deleted };
        slot.fill(change, &path, &stored)?;
        Ok(Step::Commit(created(&stored)))
    })
}

/// What was at a path when it was read.
struct Slot {
    there: Option<Entry<FileRecord>>,
    deleted: Option<Entry>,
}

impl Slot {
    /// The file and what is shown of it appear together.
    fn fill(&self, change: &mut Transaction, path: &str, stored: &FileRecord) -> Result<(), Failure> {
        let held = std::slice::from_ref(&stored.sha256);
        change.put_json(&records::file(path), stored, Expectation::unchanged(self.there.as_ref()), held)?;
        let deleted = records::deleted(path);
        match &self.deleted {
            Some(entry) => change.remove(&deleted, Expectation::Revision(entry.revision)),
            None => change.require(&deleted, Expectation::Absent),
        };
        change.show(&shown(path, stored));
        Ok(())
    }
}

fn shown(path: &str, stored: &FileRecord) -> Version {
    let id = path::id(path);
    let encoded: Vec<String> = path.split('/').map(percent_encode).collect();
    let version = Version::new(id.name, id.version)
        .file(path, stored.sha256.clone(), stored.size)
        .summary(path)
        .property("path", encoded.join("/"));
    // Of a file that is replaced the age is that of what is there now.
    Version { published: Some(stored.time), ..version }
}

fn created(stored: &FileRecord) -> Response {
    Response::created().header(Algorithm::Sha256.header(), stored.sha256.hex())
}

fn exists(path: &str) -> Failure {
    Failure::already_exists(format!(
        "{path} is there already and cannot be replaced; put it under another path"
    ))
}

/// What was stated must be so.
fn compare(body: &Blob, sums: Vec<(Algorithm, String)>) -> Result<(), Failure> {
    for (algorithm, said) in sums {
        let name = algorithm.name();
        let is = body.digest(name)?;
        if is.hex() != said {
            let text = format!(
                "The {name} is said to be {said}, but that of what came is {}; send it again",
                is.hex()
            );
            return Err(Failure::new(400, "checksum_mismatch", text));
        }
    }
    Ok(())
}
