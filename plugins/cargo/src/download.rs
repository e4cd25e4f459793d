//! The file of a version.

use crate::name::Name;
use crate::proxy;
use crate::records::{VersionRecord, missing, missing_version};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let (spelling, version) = (params.segment("name"), params.segment("version"));
    let intent = Intent::read().subject(format!("{spelling}@{version}"));
    Ok(match Name::new(spelling) {
        Some(name) => intent.about_package(name.as_str()),
        None => intent.many_packages(),
    })
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (spelling, number) = (params.segment("name"), params.segment("version"));
    let name = Name::new(spelling).ok_or_else(|| missing(spelling))?;
    let found = cx.first(|source| {
        if source.is_proxy() {
            return proxy::file(cx, source, &name, spelling, number);
        }
        let Some(found) = VersionRecord::find(source, &name, number)? else { return Ok(None) };
        let blob = source.recorded_blob(&found.value.sha256)?;
        Ok(Some(Response::blob(blob).modified(found.value.time)))
    })?;
    let found = found.ok_or_else(|| missing_version(spelling, number))?;
    Ok(found.content_type("application/gzip").immutable())
}
