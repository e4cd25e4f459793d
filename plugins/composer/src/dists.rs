//! Downloads of a version's file.

use crate::name;
use crate::proxy::{self, RequestedFile};
use crate::records;
use crate::version::Version;
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &name::of(params)))
}

/// `GET /dists/VENDOR/PACKAGE/VERSION.zip`. For a branch, `reference` in the query may name one
/// state of the branch. The plugin then serves no other state.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, file) = (name::of(params), params.joined("file"));
    let missing = || Failure::not_found(format!("There is no file {file} of {name} in this repository"));
    let (text, kind) = file.rsplit_once('.').ok_or_else(missing)?;
    let version = Version::parse(text).filter(|_| name::is_name(&name)).ok_or_else(missing)?;
    let reference = if version.is_dev() { request.query("reference") } else { None };
    let requested = RequestedFile { name: &name, version: &version, kind, reference };
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            proxy::file(cx, repository, &requested)
        } else {
            hosted(repository, &requested, text)
        }
    })?;
    found.ok_or_else(missing)
}

fn hosted(
    repository: &Repository,
    requested: &RequestedFile<'_>,
    text: &str,
) -> Result<Option<Response>, Failure> {
    let RequestedFile { name, version, kind, reference } = *requested;
    let record = records::find(repository, name, &version.key(), text)?;
    let Some(record) = record.map(|entry| entry.value) else { return Ok(None) };
    let has_state = reference.is_none_or(|state| state == record.sha1);
    if kind != "zip" || record.version != text || !has_state {
        return Ok(None);
    }
    let response = Response::blob(repository.recorded_blob(&record.sha256)?)
        .content_type("application/zip")
        .modified(record.time);
    let is_fixed = !version.is_dev() || reference.is_some();
    Ok(Some(if is_fixed { response.immutable() } else { response.revalidate() }))
}
