//! Downloads of charts and their signatures, both below `charts/` and directly below the
//! repository's address.

use crate::media_types::{MEDIA_TYPE, PROVENANCE_TYPE};
use crate::{name, proxy, records};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    Ok(name::about_file(Intent::read().subject(file), file))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let file = params.segment("file");
    let found = cx.first(|repository| {
        if repository.is_proxy() { proxy::file(cx, repository, file) } else { hosted(repository, file) }
    })?;
    found.ok_or_else(|| missing(file))
}

fn hosted(repository: &Repository, file: &str) -> Result<Option<Response>, Failure> {
    let signed = file.strip_suffix(".prov");
    let Some(record) = records::by_file(repository, signed.unwrap_or(file))? else { return Ok(None) };
    let (digest, media_type) = match signed {
        None => (Some(&record.sha256), MEDIA_TYPE),
        Some(_) => (record.provenance.as_ref(), PROVENANCE_TYPE),
    };
    let Some(digest) = digest else { return Ok(None) };
    let response = Response::blob(repository.recorded_blob(digest)?).content_type(media_type);
    Ok(Some(response.modified(record.time).immutable()))
}

pub(crate) fn missing(file: &str) -> Failure {
    Failure::not_found(format!("There is no file {file} in this repository"))
}
