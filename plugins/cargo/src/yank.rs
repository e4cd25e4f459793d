//! `cargo yank`, and what people see of a version.

use crate::busy;
use crate::name::Name;
use crate::records::{self, VersionRecord, missing, missing_version};
use packhouse_sdk::{Context, Expectation, Failure, Params, Repository, Request, Response, Step, Version};
use serde_json::json;

pub(crate) fn yank(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, params, true)
}

pub(crate) fn unyank(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    answer(cx, params, false)
}

fn answer(cx: &Context, params: &Params<'_>, yanked: bool) -> Result<Response, Failure> {
    let said = params.segment("name");
    let name = Name::new(said).ok_or_else(|| missing(said))?;
    mark(cx.target()?, &name, params.segment("version"), yanked, "")?;
    Ok(Response::json(&json!({"ok": true}))?)
}

/// Yanks a version, or takes that back. One that is so already stays as it is.
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
        change.show(&shown(name, record));
        Ok(Step::Commit(()))
    })
}

/// What people and policies see of a version, without its file.
pub(crate) fn shown(name: &Name, record: &VersionRecord) -> Version {
    let line = &record.line;
    let shown = Version::new(name.as_str(), &line.vers)
        .summary(&record.summary)
        .property("name", &line.name)
        .property("keywords", &record.words);
    let shown = if record.license.is_empty() { shown } else { shown.property("license", &record.license) };
    let shown =
        line.rust_version.iter().fold(shown, |shown, version| shown.property("rust_version", version));
    if !line.yanked {
        return shown;
    }
    let shown = shown.state("yanked");
    if record.reason.is_empty() { shown } else { shown.property("reason", &record.reason) }
}
