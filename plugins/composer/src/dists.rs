//! `GET` of a version's file.

use crate::name;
use crate::proxy::{self, AskedFile};
use crate::records;
use crate::version::Version;
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &name::of(params)))
}

/// `GET /dists/VENDOR/PACKAGE/VERSION.zip`. A branch's address may name one state of the branch in
/// `reference`: then no other state is served.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, file) = (name::of(params), params.joined("file"));
    let missing = || Failure::not_found(format!("There is no file {file} of {name} in this repository"));
    let (text, kind) = file.rsplit_once('.').ok_or_else(missing)?;
    let version = Version::parse(text).filter(|_| name::is_name(&name)).ok_or_else(missing)?;
    let reference = if version.is_dev() { request.query("reference") } else { None };
    let asked = AskedFile { name: &name, version: &version, kind, reference };
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            proxy::file(cx, repository, &asked)
        } else {
            hosted(repository, &asked, text)
        }
    })?;
    found.ok_or_else(missing)
}

fn hosted(repository: &Repository, asked: &AskedFile<'_>, text: &str) -> Result<Option<Response>, Failure> {
    let AskedFile { name, version, kind, reference } = *asked;
    let record = records::find(repository, name, &version.key(), text)?;
    let Some(record) = record.map(|entry| entry.value) else { return Ok(None) };
    let is_state = reference.is_none_or(|asked| asked == record.sha1);
    if kind != "zip" || record.version != text || !is_state {
        return Ok(None);
    }
    let response = Response::blob(repository.recorded_blob(&record.sha256)?)
        .content_type("application/zip")
        .modified(record.time);
    let settled = !version.is_dev() || reference.is_some();
    Ok(Some(if settled { response.immutable() } else { response.revalidate() }))
}
