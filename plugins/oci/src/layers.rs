//! `GET` and `HEAD` of layers and configs: bytes by their digest.

use crate::{failure, name, proxy};
use packhouse_sdk::{Context, Digest, Failure, Intent, Params, Repository, Request, Response};

/// A push asks with HEAD for what is there already, and that is part of its rights.
pub(crate) fn plan(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let image = name::image(request, params)?;
    name::digest(params.segment("digest"))?;
    let intent = Intent::read().subject(image.as_str()).about_package(image);
    Ok(if request.method == "HEAD" { intent.for_publish() } else { intent })
}

pub(crate) fn get(cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    let image = name::image(request, params)?;
    let digest = name::digest(params.segment("digest"))?;
    if request.method == "HEAD" {
        // An answer that depends on the time is not kept: to ask anew renews the time for which the blob is held, on which a
        // push relies that leaves the blob out because it is here.
        cx.now();
    }
    let found = cx.first(|repository| one(cx, request, repository, &image, &digest))?;
    found.ok_or_else(failure::unknown_blob)
}

/// What one repository answers.
fn one(
    cx: &Context,
    request: &Request,
    repository: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Option<Response>, Failure> {
    let answer = if repository.is_proxy() {
        proxy::layer(cx, request, repository, image, digest)?
    } else {
        repository.blob(digest)?.map(Response::blob)
    };
    Ok(answer.map(|answer| answer.header("docker-content-digest", digest.as_str()).immutable()))
}
