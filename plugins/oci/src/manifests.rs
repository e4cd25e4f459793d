//! `GET` and `HEAD` of manifests, by tag or by digest.

use crate::name::{self, Reference};
use crate::records::{self, ManifestRecord, TagRecord};
use crate::{answer, failure, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

/// A push asks with HEAD for what is there already, and that is part of its rights.
pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    name::reference(params)?;
    let intent = Intent::read().subject(image.as_str()).about_package(image);
    Ok(if request.method == "HEAD" { intent.for_publish() } else { intent })
}

/// Served as it is whatever types the request accepts, as other registries do: a client that cannot use it says so itself.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let image = name::image(request, params)?;
    let reference = name::reference(params)?;
    let ask = |repository: &Repository| {
        if repository.is_proxy() {
            proxy::manifest(cx, repository, &image, &reference)
        } else {
            stored(repository, request, &image, &reference)
        }
    };
    cx.first(ask)?.ok_or_else(failure::unknown_manifest)
}

fn stored(
    repository: &Repository,
    request: &Request,
    image: &str,
    reference: &Reference,
) -> Result<Option<Response>, Failure> {
    let digest = match reference {
        Reference::Digest(digest) => digest.clone(),
        Reference::Tag(tag) => match repository.get_json::<TagRecord>(&records::tag(image, tag))? {
            Some(entry) => entry.value.digest,
            None => return Ok(None),
        },
    };
    let Some(entry) = repository.get_json::<ManifestRecord>(&records::manifest(image, &digest))? else {
        return Ok(None);
    };
    let blob = match repository.blob(&digest)? {
        Some(blob) => blob,
        // A push that asks for it sends it again.
        None if request.method == "HEAD" => return Ok(None),
        None => repository.recorded_blob(&digest)?,
    };
    let answer = Response::blob(blob).content_type(entry.value.media_type);
    Ok(Some(answer::manifest(answer, &digest, reference)))
}
