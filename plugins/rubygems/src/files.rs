//! Downloads of gems.

use crate::{gems, name, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response};

/// Returns the intent for `gems/STEM.gem` and `quick/Marshal.4.8/STEM.gemspec.rz`.
pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    let stem = file.strip_suffix(".gem").or_else(|| file.strip_suffix(".gemspec.rz")).unwrap_or_default();
    Ok(name::about_stem(Intent::read().subject(file), stem))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let file = params.segment("file");
    let stem = file.strip_suffix(".gem").ok_or_else(|| missing(file))?;
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            return proxy::file(cx, repository, stem);
        }
        let Some(record) = gems::by_stem(repository, stem)? else { return Ok(None) };
        let blob = repository.recorded_blob(&record.sha256)?;
        Ok(Some(Response::blob(blob).modified(record.time).immutable()))
    })?;
    found.ok_or_else(|| missing(file))
}

pub(crate) fn missing(file: &str) -> Failure {
    Failure::not_found(format!("There is no file {file} in this repository"))
}
