//! Downloads of a file and of its companions: `.metadata` (PEP 658), `.asc`, `.provenance`.

use crate::attestation;
use crate::part::{FilePart, media_type};
use crate::records::{self, FileRecord};
use crate::{name, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read().subject(params.segment("file")), params))
}

pub(crate) fn get(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let requested = params.segment("file");
    let project = name::project(params.segment("project")).ok_or_else(|| missing(requested))?;
    let found = cx.first(|repository| {
        if repository.is_proxy() {
            proxy::file(cx, repository, &project, params.segment("version"), requested)
        } else {
            hosted(repository, params, requested)
        }
    })?;
    found.ok_or_else(|| missing(requested))
}

fn hosted(
    repository: &Repository,
    params: &Params<'_>,
    requested: &str,
) -> Result<Option<Response>, Failure> {
    let (filename, part) = FilePart::of(requested);
    match find(repository, params, filename)? {
        Some(record) => respond(repository, requested, &record, part).map(Some),
        None => Ok(None),
    }
}

/// Finds the record of a file whose project and version match the request's path.
pub(crate) fn find(
    repository: &Repository,
    params: &Params<'_>,
    filename: &str,
) -> Result<Option<FileRecord>, Failure> {
    let Some(project) = name::project(params.segment("project")) else { return Ok(None) };
    if filename.is_empty() || filename.len() > 400 {
        return Ok(None);
    }
    let record = repository.get_json::<FileRecord>(&records::file(&project, filename))?;
    Ok(record.map(|entry| entry.value).filter(|record| record.version == params.segment("version")))
}

/// Serves a file's provenance object at its own path (PEP 740).
pub(crate) fn provenance(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let file = params.segment("file");
    name::project(params.segment("project")).ok_or_else(|| missing(file))?;
    // A proxy serves no provenance objects.
    for repository in cx.hosted()? {
        let Some(record) = find(repository, params, file)? else { continue };
        let Some(digest) = record.provenance else { break };
        let blob = repository.recorded_blob(&digest)?;
        return Ok(Response::blob(blob)
            .content_type(attestation::MEDIA_TYPE)
            .modified(record.time)
            .immutable());
    }
    Err(Failure::not_found(format!("There are no attestations of {file} in this repository")))
}

pub(crate) fn missing(file: &str) -> Failure {
    Failure::not_found(format!("There is no file {file} in this repository"))
}

fn respond(
    repository: &Repository,
    requested: &str,
    record: &FileRecord,
    part: FilePart,
) -> Result<Response, Failure> {
    let (digest, media_type) = match part {
        FilePart::File => (Some(&record.sha256), media_type(requested)),
        FilePart::Metadata => (record.metadata(), "text/plain; charset=utf-8"),
        FilePart::Signature => (record.signature.as_ref(), "application/pgp-signature"),
        FilePart::Provenance => (record.provenance.as_ref(), attestation::MEDIA_TYPE),
    };
    let blob = repository.recorded_blob(digest.ok_or_else(|| missing(requested))?)?;
    Ok(Response::blob(blob).content_type(media_type).modified(record.time).immutable())
}
