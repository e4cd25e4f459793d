//! `PUT /api/v1/crates/new`: publishes a version if its metadata match its file.

use crate::body::{self, Frame};
use crate::line::index_time;
use crate::metadata::{CrateMetadata, CrateVersion};
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
        return Err(Failure::too_large(format!("The crate has {size} bytes; at most {limit} are allowed")));
    }
    let (file, metadata_blob) = (frame.file(&body)?, frame.metadata(&body)?);
    let metadata = CrateMetadata::read(&metadata_blob.read_all(metadata_blob.size()?)?)?;
    let release = metadata.release()?;
    archive::check(&file, &metadata)?;
    let (sha256, time) = (file.sha256()?, cx.now());
    let record = VersionRecord {
        line: metadata.line(sha256.hex(), index_time(time))?,
        sha256,
        size,
        metadata: metadata_blob.sha256()?,
        time,
        publisher: request.caller(),
        summary: metadata.summary(),
        words: metadata.words(),
        license: metadata.license(),
        reason: String::new(),
    };
    repository.update_if_needed(busy, |change| {
        if let Some(Outcome::UnknownBlobs(_)) = change.previous() {
            return Err(Failure::internal("the host does not know the stored body"));
        }
        let before = VersionState::find(repository, &release)?;
        if let Some(answer) = before.conflict(&record, &settings) {
            return answer.map(Step::Done);
        }
        repository.keep(&file)?;
        repository.keep(&metadata_blob)?;
        before.put_version(change, &release, &record)?;
        Ok(Step::Commit(accepted()?))
    })
}

/// The records of a version before the publish.
struct VersionState {
    /// The name of the crate, in the spelling of its author.
    a_crate: Option<Entry<String>>,
    version: Option<Entry<VersionRecord>>,
    deleted: Option<Entry>,
}

impl VersionState {
    fn find(repository: &Repository, release: &CrateVersion) -> Result<Self, Failure> {
        let CrateVersion { name, version } = release;
        Ok(Self {
            a_crate: repository.get_json(&records::a_crate(name))?,
            version: repository.get_json(&records::version(name, version))?,
            deleted: repository.get(&records::deleted(name, version))?,
        })
    }

    /// Returns the response if the plugin must not store the version: a refusal, or success if the
    /// same file is already published. `None` if the version can be published.
    fn conflict(&self, record: &VersionRecord, settings: &Settings) -> Option<Result<Response, Failure>> {
        let (name, number) = (&record.line.name, &record.line.vers);
        if let Some(existing) = self.a_crate.as_ref().filter(|existing| existing.value != *name) {
            let text = format!(
                "The crate is called {} here, and {name} counts as the same name; publish it under the existing name",
                existing.value
            );
            return Some(Err(Failure::conflict(text)));
        }
        if let Some(existing) = &self.version {
            let same = existing.value.sha256 == record.sha256 && settings.redeploy == Redeploy::Identical;
            let text = format!(
                "crate version `{}` is already uploaded and cannot be replaced; publish a new version",
                existing.value.line.vers
            );
            return Some(if same { accepted() } else { Err(Failure::already_exists(text)) });
        }
        if self.deleted.is_some() && !settings.republish_deleted {
            let text = format!(
                "Version {number} of {name} was deleted here, and its number cannot be used again; publish a new version"
            );
            return Some(Err(Failure::already_exists(text)));
        }
        None
    }

    /// Adds three things to a change: the record of the crate, the record of the version, and the
    /// listing of the version.
    fn put_version(
        &self,
        change: &mut Transaction,
        release: &CrateVersion,
        record: &VersionRecord,
    ) -> Result<(), Failure> {
        let CrateVersion { name, version } = release;
        let a_crate = Expectation::unchanged(self.a_crate.as_ref());
        change.put_json(&records::a_crate(name), &record.line.name, a_crate, &[])?;
        change.put_json(&records::version(name, version), record, Expectation::Absent, &record.blobs())?;
        let deleted = records::deleted(name, version);
        match &self.deleted {
            Some(entry) => change.remove(&deleted, Expectation::Revision(entry.revision)),
            None => change.require(&deleted, Expectation::Absent),
        };
        let path = format!("api/v1/crates/{}/{}/download", record.line.name, record.line.vers);
        change.show(&yank::published(name, record).file(path, record.sha256.clone(), record.size));
        Ok(())
    }
}

fn accepted() -> Result<Response, Failure> {
    let warnings = json!({"invalid_categories": [], "invalid_badges": [], "other": []});
    Ok(Response::json(&json!({"warnings": warnings}))?)
}
