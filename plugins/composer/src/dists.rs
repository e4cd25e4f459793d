//! `GET` of a version's file.

use crate::name;
use crate::proxy;
use crate::records::{self, PackageRecord};
use crate::version::Version;
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &package(params)))
}

fn package(params: &Params<'_>) -> String {
    format!("{}/{}", params.segment("vendor"), params.segment("package"))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, file) = (package(params), params.segment("file"));
    let missing = || Failure::not_found(format!("There is no file {file} of {name} in this repository"));
    let (text, kind) = file.rsplit_once('.').ok_or_else(missing)?;
    let version = Version::parse(text).filter(|_| name::is_name(&name)).ok_or_else(missing)?;
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            return proxy::file(cx, repository, &name, &version, kind);
        }
        let record = repository.get_json::<PackageRecord>(&records::version(&name, &version.key()))?;
        let record = record.map(|entry| entry.value).filter(|record| kind == "zip" && record.version == text);
        let Some(record) = record else { return Ok(None) };
        let blob = repository.recorded_blob(&record.sha256)?;
        Ok(Some(Response::blob(blob).content_type("application/zip").modified(record.time).immutable()))
    })?;
    found.ok_or_else(missing)
}
