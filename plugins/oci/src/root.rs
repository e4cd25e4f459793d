//! The paths directly below `/v2/`, and the errors for paths and methods outside the protocol.

use crate::{failure, name};
use packhouse_sdk::{Context, Failure, Intent, Params, Request, Response, Router};
use serde_json::json;

/// Adds the routes of `/v2/` without a repository.
pub(crate) fn routes(router: &mut Router) {
    router.get("/", plan_ping, ping);
    router.get("/_catalog", plan_catalog, catalog);
    refuse_the_rest(router);
}

/// Adds the ping and the catalogue for the registry of one repository. The server checks
/// credentials before it responds below a repository's address, so only clients with access get the
/// error for the catalogue.
pub(crate) fn registry_routes(router: &mut Router) {
    router.get("/", plan_ping, ping);
    router.get("/_catalog", plan_ping, catalog);
}

/// Adds the last routes, which respond to all other requests with the errors of the protocol.
pub(crate) fn refuse_the_rest(router: &mut Router) {
    for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
        router.row(method, "/", refuse, never_called);
        router.row(method, "/{path..}", refuse, never_called);
    }
}

/// Plans the ping. The host refuses a ping without a credential, because clients learn from the
/// refusal how to get one. The ping of a public repository needs no credential.
fn plan_ping(_request: &Request, _params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::read())
}

fn ping(_cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    let answer = Response::bytes("{}").content_type("application/json");
    Ok(answer.header("docker-distribution-api-version", "registry/2.0"))
}

/// Plans the catalogue. The host need not check a credential, because the plugin refuses all
/// clients.
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
        (Some("root"), path) | (None, path @ ([] | ["_catalog"])) => outside_repositories(path),
        (_, path) => inside_repository(request, path)?,
    })
}

fn never_called(_cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    Err(failure::bad_path())
}

fn outside_repositories(path: &[&str]) -> Failure {
    match path {
        [] => failure::bad_method("GET, HEAD"),
        ["_catalog"] => failure::bad_method(""),
        ["repositories"] | ["repositories", ""] => failure::no_image(),
        _ => failure::bad_path(),
    }
}

fn inside_repository(request: &Request, path: &[&str]) -> Result<Failure, Failure> {
    let lacks_image = matches!(
        path,
        [] | [""] | ["manifests" | "blobs" | "referrers", _] | ["tags", "list"] | ["blobs", "uploads", _]
    );
    if lacks_image {
        return Ok(failure::no_image());
    }
    let Some(methods) = methods(path) else {
        return Ok(failure::bad_path());
    };
    name::check_repository(request)?;
    Ok(failure::bad_method(methods))
}

/// The methods of a path in the protocol. `None` for other paths.
fn methods(path: &[&str]) -> Option<&'static str> {
    Some(match path {
        [.., "blobs", "uploads"] | [.., "blobs", "uploads", ""] => "POST",
        [.., "blobs", "uploads", _] => "GET, HEAD, PATCH, PUT, DELETE",
        [.., "manifests", _] => "GET, HEAD, PUT, DELETE",
        [.., "blobs" | "referrers", _] | [.., "tags", "list"] => "GET, HEAD",
        _ => return None,
    })
}
