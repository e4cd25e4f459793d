//! `GET` and `HEAD` of layers and configs by digest.

use crate::{failure, name, proxy};
use packhouse_sdk::{Context, Digest, Failure, Intent, Params, Repository, Request, Response};

/// Plans a read. A credential that may only publish may send HEAD, because a push uses HEAD to find
/// existing layers.
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
        // This call makes the response depend on the time. The host does not cache such a response,
        // so every HEAD looks up the blob. Each look-up renews the time for which the host holds
        // the blob. A push relies on this: it does not send a blob that HEAD has found.
        cx.now();
    }
    let found = cx.first(|repository| from_repository(cx, request, repository, &image, &digest))?;
    found.ok_or_else(failure::unknown_blob)
}

/// Returns the response of one repository. `None` if the repository does not have the blob.
fn from_repository(
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
