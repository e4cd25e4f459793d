//! `PUT /api/v1/crates/new`: a version, once what is said of it agrees with its file.

use crate::body::{self, Frame};
use crate::line::written;
use crate::metadata::{Metadata, Release};
use crate::records::{self, VersionRecord};
use crate::{FILE_LIMIT, archive, busy, yank};
use packhouse_sdk::{
    Context, Entry, Expectation, Failure, Intent, Outcome, Params, ReadAt, Redeploy, Repository, Request,
    Response, Settings, Step, Transaction,
};
use serde_json::json;

pub(crate) fn plan(_request: &Request, _params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(Intent::publish().body(body::LIMIT))
}

pub(crate) fn put(cx: &Context, request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    let (repository, body) = (cx.target()?, request.planned_body()?);
    let (frame, settings) = (Frame::read(&body)?, Settings::of(repository)?);
    let (size, limit) = (frame.file_size(), settings.file_limit(FILE_LIMIT));
    if size > limit {
        return Err(Failure::too_large(format!(
            "The crate has {size} bytes, and at most {limit} are allowed"
        )));
    }
    let (file, told) = (frame.file(&body)?, frame.metadata(&body)?);
    let metadata = Metadata::read(&told.read_all(told.size()?)?)?;
    let release = metadata.release()?;
    archive::check(&file, &metadata)?;
    let (sha256, time) = (file.sha256()?, cx.now());
    let record = VersionRecord {
        line: metadata.line(sha256.hex(), written(time))?,
        sha256,
        size,
        metadata: told.sha256()?,
        time,
        publisher: request.caller(),
        summary: metadata.summary(),
        words: metadata.words(),
        license: metadata.license(),
        reason: String::new(),
    };
    repository.update_if_needed(busy, |change| {
        if let Some(Outcome::UnknownBlobs(_)) = change.previous() {
            return Err(Failure::internal("a blob that was kept is not held"));
        }
        let slot = Slot::find(repository, &release)?;
        if let Some(answer) = slot.taken(&record, &settings) {
            return answer.map(Step::Done);
        }
        repository.keep(&file)?;
        repository.keep(&told)?;
        slot.fill(change, &release, &record)?;
        Ok(Step::Commit(accepted()?))
    })
}

/// What is there where a version is to go, as it was read.
struct Slot {
    /// Its name as its author spells it.
    a_crate: Option<Entry<String>>,
    version: Option<Entry<VersionRecord>>,
    deleted: Option<Entry>,
}

impl Slot {
    fn find(repository: &Repository, release: &Release) -> Result<Self, Failure> {
        let Release { name, version } = release;
        Ok(Self {
            a_crate: repository.get_json(&records::a_crate(name))?,
            version: repository.get_json(&records::version(name, version))?,
            deleted: repository.get(&records::deleted(name, version))?,
        })
    }

    /// The answer where the version cannot come here, or need not.
    fn taken(&self, record: &VersionRecord, settings: &Settings) -> Option<Result<Response, Failure>> {
        let (name, number) = (&record.line.name, &record.line.vers);
        if let Some(there) = self.a_crate.as_ref().filter(|there| there.value != *name) {
            let text = format!(
                "The crate is called {} here, and {name} would be the same name; publish it under that",
                there.value
            );
            return Some(Err(Failure::conflict(text)));
        }
        if let Some(there) = &self.version {
            let same = there.value.sha256 == record.sha256 && settings.redeploy == Redeploy::Identical;
            let text = format!(
                "crate version `{}` is already uploaded and cannot be replaced; publish a new version",
                there.value.line.vers
            );
            return Some(if same { accepted() } else { Err(Failure::already_exists(text)) });
        }
        if self.deleted.is_some() && !settings.republish_deleted {
            let text = format!(
                "Version {number} of {name} was deleted here, and its number is not used again; publish a new version"
            );
            return Some(Err(Failure::already_exists(text)));
        }
        None
    }

    /// The version, its crate and what is shown of them appear together.
    fn fill(
        &self,
        change: &mut Transaction,
        release: &Release,
        record: &VersionRecord,
    ) -> Result<(), Failure> {
        let Release { name, version } = release;
        let a_crate = Expectation::unchanged(self.a_crate.as_ref());
        change.put_json(&records::a_crate(name), &record.line.name, a_crate, &[])?;
        change.put_json(&records::version(name, version), record, Expectation::Absent, &record.blobs())?;
        let deleted = records::deleted(name, version);
        match &self.deleted {
            Some(entry) => change.remove(&deleted, Expectation::Revision(entry.revision)),
            None => change.require(&deleted, Expectation::Absent),
        };
        let path = format!("api/v1/crates/{}/{}/download", record.line.name, record.line.vers);
        change.show(&yank::shown(name, record).file(path, record.sha256.clone(), record.size));
        Ok(())
    }
}

fn accepted() -> Result<Response, Failure> {
    let warnings = json!({"invalid_categories": [], "invalid_badges": [], "other": []});
    Ok(Response::json(&json!({"warnings": warnings}))?)
}
