//! `PUT` of a file. An upload cannot replace a stored file unless the setting `overwrite` is true.

use crate::checksum::{Algorithm, stated};
use crate::path::{self, PathTarget, bad};
use crate::records::{self, FileRecord};
use crate::{FILE_LIMIT, busy};
use packhouse_sdk::{
    Blob, Context, Entry, Expectation, Failure, Intent, Outcome, Params, Redeploy, Repository, Request,
    Response, Settings, Step, Transaction, Version, percent_encode,
};
use serde::Deserialize;

/// The setting that uploads read.
#[derive(Deserialize)]
struct PublishSettings {
    overwrite: bool,
}

/// Returns true if an upload may replace a stored file.
pub(crate) fn overwrites(repository: &Repository) -> Result<bool, Failure> {
    Ok(repository.settings::<PublishSettings>()?.overwrite)
}

pub(crate) fn plan(request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    let target = PathTarget::parse(&request.path)?;
    let PathTarget::File(path) = target else {
        return Err(bad("The path of a file must not end with a slash"));
    };
    let sums = stated(request)?;
    let sha512 = sums.iter().any(|(algorithm, _)| *algorithm == Algorithm::Sha512);
    let digests: &[&str] = if sha512 { &["sha1", "md5", "sha512"] } else { &["sha1", "md5"] };
    let package = path::package(path::split(&path).0);
    Ok(Intent::publish().subject(path.as_str()).about_package(package).body(FILE_LIMIT).digests(digests))
}

/// Refuses an upload to the path of an existing file before the client sends the bytes. If the
/// repository allows identical uploads, refuses only an upload of a different size; `put` later
/// compares the bytes.
pub(crate) fn check(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<(), Failure> {
    let (repository, path) = (cx.target()?, request.path.join("/"));
    if overwrites(repository)? {
        return Ok(());
    }
    let Some(existing) = FileRecord::find(repository, &path)? else { return Ok(()) };
    let length = request.header("content-length").and_then(|length| length.parse::<u64>().ok());
    let other_size = length.is_some_and(|length| length != existing.value.size);
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
            return Err(Failure::internal("the host does not know the stored body"));
        }
        let existing = FileRecord::find(repository, &path)?;
        if let Some(existing) = &existing {
            let is_same = existing.value.sha256 == stored.sha256;
            if is_same && (overwrite || settings.redeploy == Redeploy::Identical) {
                return Ok(Step::Done(created(&stored)));
            }
            if !overwrite {
                return Err(exists(&path));
            }
        }
        let deleted = repository.get(&records::deleted(&path))?;
        if deleted.is_some() && !overwrite && !settings.republish_deleted {
            let text = format!(
                "The file {path} was deleted here, and its path cannot be used again; choose another path"
            );
            return Err(Failure::already_exists(text));
        }
        repository.keep(&body)?;
        let before = PathState { existing, deleted };
        before.put_file(change, &path, &stored)?;
        Ok(Step::Commit(created(&stored)))
    })
}

/// Records of a path before the upload.
struct PathState {
    existing: Option<Entry<FileRecord>>,
    deleted: Option<Entry>,
}

impl PathState {
    /// Adds the file and its published version to the commit. Removes the record of an earlier
    /// deletion.
    fn put_file(&self, change: &mut Transaction, path: &str, stored: &FileRecord) -> Result<(), Failure> {
        let blobs = std::slice::from_ref(&stored.sha256);
        let expect = Expectation::unchanged(self.existing.as_ref());
        change.put_json(&records::file(path), stored, expect, blobs)?;
        let deleted = records::deleted(path);
        match &self.deleted {
            Some(entry) => change.remove(&deleted, Expectation::Revision(entry.revision)),
            None => change.require(&deleted, Expectation::Absent),
        };
        change.show(&published(path, stored));
        Ok(())
    }
}

/// Returns the version that browsing, search and policies use for a file.
fn published(path: &str, stored: &FileRecord) -> Version {
    let id = path::id(path);
    let encoded: Vec<String> = path.split('/').map(percent_encode).collect();
    let version = Version::new(id.name, id.version)
        .file(path, stored.sha256.clone(), stored.size)
        .summary(path)
        .property("path", encoded.join("/"));
    // The age of a replaced file starts at the replacement.
    Version { published: Some(stored.time), ..version }
}

fn created(stored: &FileRecord) -> Response {
    Response::created().header(Algorithm::Sha256.header(), stored.sha256.hex())
}

fn exists(path: &str) -> Failure {
    Failure::already_exists(format!("{path} exists already and cannot be replaced; upload to another path"))
}

/// Compares the body with the checksums that the client stated.
///
/// # Errors
/// 400 `checksum_mismatch` if a checksum differs.
fn compare(body: &Blob, sums: Vec<(Algorithm, String)>) -> Result<(), Failure> {
    for (algorithm, expected) in sums {
        let name = algorithm.name();
        let actual = body.digest(name)?;
        if actual.hex() != expected {
            let text = format!(
                "The request states the {name} {expected}, but the {name} of the received bytes is {}; send the file again",
                actual.hex()
            );
            return Err(Failure::new(400, "checksum_mismatch", text));
        }
    }
    Ok(())
}
