//! `GET` and `HEAD` of manifests, by tag or by digest.

use crate::name::{self, Reference};
use crate::records::{self, ManifestRecord, TagRecord};
use crate::{failure, group, proxy};
use packhouse_sdk::{Context, Digest, Failure, Intent, Params, Repository, Request, Response};

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
    let named = matches!(reference, Reference::Digest(_));
    let found = group::first(cx, named, |repository| match repository.kind().as_str() {
        "proxy" => proxy::manifest(cx, repository, &image, &reference),
        _ => stored(repository, &image, &reference),
    })?;
    found.ok_or_else(failure::unknown_manifest)
}

fn stored(repository: &Repository, image: &str, reference: &Reference) -> Result<Option<Response>, Failure> {
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
    let blob = repository.blob(&digest)?;
    let blob =
        blob.ok_or_else(|| Failure::internal(format!("a record names {digest}, which is not held")))?;
    let answer = Response::blob(blob).content_type(entry.value.media_type);
    Ok(Some(answered(answer, &digest, reference)))
}

/// With what clients read of a manifest's answer.
pub(crate) fn answered(answer: Response, digest: &Digest, reference: &Reference) -> Response {
    let answer = answer.header("docker-content-digest", digest.as_str());
    match reference {
        Reference::Digest(_) => answer.immutable(),
        Reference::Tag(_) => answer.revalidate(),
    }
}
