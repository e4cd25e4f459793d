//! Yanking and unyanking of versions, and the listing of a version.

use crate::busy;
use crate::name::Name;
use crate::records::{self, VersionRecord, missing, missing_version};
use packhouse_sdk::{
    Context, Expectation, Failure, Intent, Params, Repository, Request, Response, Step, Version,
};
use serde_json::json;

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let spelling = params.segment("name");
    let intent = Intent::publish().subject(spelling);
    Ok(match Name::new(spelling) {
        Some(name) => intent.about_package(name.as_str()),
        None => intent,
    })
}

pub(crate) fn yank(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, params, true)
}

pub(crate) fn unyank(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, params, false)
}

fn answer(cx: &Context, params: &Params<'_>, yanked: bool) -> Result<Response, Failure> {
    let spelling = params.segment("name");
    let name = Name::new(spelling).ok_or_else(|| missing(spelling))?;
    mark(cx.target()?, &name, params.segment("version"), yanked, "")?;
    Ok(Response::json(&json!({"ok": true}))?)
}

/// Yanks or unyanks a version. Does nothing if the version already has this state and reason.
pub(crate) fn mark(
    repository: &Repository,
    name: &Name,
    number: &str,
    yanked: bool,
    reason: &str,
) -> Result<(), Failure> {
    repository.update_if_needed(busy, |change| {
        let entry = VersionRecord::find(repository, name, number)?;
        let mut entry = entry.ok_or_else(|| missing_version(name.as_str(), number))?;
        let record = &mut entry.value;
        if record.line.yanked == yanked && record.reason == reason {
            return Ok(Step::Done(()));
        }
        record.line.yanked = yanked;
        record.reason = if yanked { reason.to_owned() } else { String::new() };
        change.put_json(&entry.key, record, Expectation::Revision(entry.revision), &record.blobs())?;
        change.require(&records::a_crate(name), Expectation::Present);
        change.show(&published(name, record));
        Ok(Step::Commit(()))
    })
}

/// Returns the listing of a version for users and policies, without its file.
pub(crate) fn published(name: &Name, record: &VersionRecord) -> Version {
    let line = &record.line;
    let version = Version::new(name.as_str(), &line.vers)
        .summary(&record.summary)
        .property("name", &line.name)
        .property("keywords", &record.words);
    let version =
        if record.license.is_empty() { version } else { version.property("license", &record.license) };
    let version =
        line.rust_version.iter().fold(version, |version, minimum| version.property("rust_version", minimum));
    if !line.yanked {
        return version;
    }
    let version = version.state("yanked");
    if record.reason.is_empty() { version } else { version.property("reason", &record.reason) }
}
