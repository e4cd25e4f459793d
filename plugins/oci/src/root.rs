//! What lies directly below `/v2/`, and every address and method that the protocol does not have.

use crate::{failure, name};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response, Router};
use serde_json::json;

/// The rows of `/v2/` without a repository.
pub(crate) fn routes(router: &mut Router) {
    router.get("/", plan_ping, ping);
    router.get("/_catalog", plan_catalog, catalog);
    refuse_the_rest(router);
}

/// The same rows of one repository's registry. There the catalogue is refused to those who may read the repository: a request below a
/// repository's address is never answered before its credential is judged.
pub(crate) fn registry_routes(router: &mut Router) {
    router.get("/", plan_ping, ping);
    router.get("/_catalog", plan_ping, catalog);
}

/// Rows behind all others, which refuse in the protocol's words.
pub(crate) fn refuse_the_rest(router: &mut Router) {
    for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
        router.row(method, "/", refuse, never);
        router.row(method, "/{path..}", refuse, never);
    }
}

/// A credential, and no more: clients learn here how to get one. A repository that anyone may read needs none.
fn plan_ping(_request: &Request, _params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::read())
}

fn ping(_cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    let answer = Response::bytes("{}").content_type("application/json");
    Ok(answer.header("docker-distribution-api-version", "registry/2.0"))
}

/// Refused to anyone, and so without asking who it is.
fn plan_catalog(_request: &Request, _params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::open())
}

fn catalog(_cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    let instead = "List repositories in the portal or at GET /repositories/, and an image's tags at /v2/NAME/tags/list.";
    let refused = Failure::new(405, "UNSUPPORTED", "catalog not yet implemented");
    Err(refused.detail(&json!({"instead": instead})).header("allow", ""))
}

fn refuse(request: &Request, params: &Params) -> Result<Intent, Failure> {
    let path: Vec<&str> = params.segments("path").iter().map(String::as_str).collect();
    Err(match (request.claim.as_deref(), path.as_slice()) {
        (Some("root"), path) | (None, path @ ([] | ["_catalog"])) => below_nothing(path),
        (_, path) => below_a_repository(request, path)?,
    })
}

fn never(_cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    Err(failure::bad_path())
}

fn below_nothing(path: &[&str]) -> Failure {
    match path {
        [] => failure::bad_method("GET, HEAD"),
        ["_catalog"] => failure::bad_method(""),
        ["repositories"] | ["repositories", ""] => failure::no_image(),
        _ => failure::bad_path(),
    }
}

fn below_a_repository(request: &Request, path: &[&str]) -> Result<Failure, Failure> {
    let alone = matches!(
        path,
        [] | [""] | ["manifests" | "blobs" | "referrers", _] | ["tags", "list"] | ["blobs", "uploads", _]
    );
    if alone {
        return Ok(failure::no_image());
    }
    let Some(methods) = methods(path) else {
        return Ok(failure::bad_path());
    };
    name::check_repository(request)?;
    Ok(failure::bad_method(methods))
}

/// What an address of the protocol can be asked; none for another address.
fn methods(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        [.., "blobs", "uploads"] | [.., "blobs", "uploads", ""] => "POST",
        [.., "blobs", "uploads", _] => "GET, HEAD, PATCH, PUT, DELETE",
        [.., "manifests", _] => "GET, HEAD, PUT, DELETE",
        [.., "blobs" | "referrers", _] | [.., "tags", "list"] => "GET, HEAD",
        _ => return None,
    })
}
