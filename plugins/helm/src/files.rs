//! `GET` of a chart's file and of the signature that goes with it, below `charts/` and at the address itself.

use crate::media_types::{MEDIA_TYPE, PROVENANCE_TYPE};
use crate::{name, proxy, records};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    let file = params.segment("file");
    Ok(name::about_file(Intent::read().subject(file), file))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let asked = params.segment("file");
    let found = cx.first(|repository| {
        if repository.is_proxy() { proxy::file(cx, repository, asked) } else { hosted(repository, asked) }
    })?;
    found.ok_or_else(|| missing(asked))
}

fn hosted(repository: &Repository, asked: &str) -> Result<Option<Response>, Failure> {
    let signed = asked.strip_suffix(".prov");
    let Some(record) = records::by_file(repository, signed.unwrap_or(asked))? else { return Ok(None) };
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
