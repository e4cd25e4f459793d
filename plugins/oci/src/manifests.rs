//! `GET` and `HEAD` of manifests, by tag or by digest.

use crate::name::{self, Reference};
use crate::records::{self, ManifestRecord, TagRecord};
use crate::{answer, failure, proxy};
use packhouse_sdk::{Context, Failure, Intent, Params, Repository, Request, Response};

/// Plans a read. A credential that may only publish may send HEAD, because a push uses HEAD to find
/// existing manifests.
pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    name::reference(params)?;
    let intent = Intent::read().subject(image.as_str()).about_package(image);
    Ok(if request.method == "HEAD" { intent.for_publish() } else { intent })
}

/// Serves the manifest even if the request does not accept its type, like other registries. A
/// client itself reports a type that it cannot use.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let image = name::image(request, params)?;
    let reference = name::reference(params)?;
    let from_repository = |repository: &Repository| {
        if repository.is_proxy() {
            proxy::manifest(cx, repository, &image, &reference)
        } else {
            stored(repository, request, &image, &reference)
        }
    };
    cx.first(from_repository)?.ok_or_else(failure::unknown_manifest)
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
        // The bytes of the manifest are lost. After a 404, the push that sent this HEAD sends the
        // manifest again.
        None if request.method == "HEAD" => return Ok(None),
        None => repository.recorded_blob(&digest)?,
    };
    let answer = Response::blob(blob).content_type(entry.value.media_type);
    Ok(Some(answer::manifest(answer, &digest, reference)))
}
