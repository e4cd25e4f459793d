//! `GET /v1/openapi.json`: the description of this API, from the code that serves it.
//!
//! A handler describes its parameters, its body, its answers of success, and those refusals that few others have (409, 429).
//! Refusals that follow from its row of the route table are added here (`answers`).

mod answers;

use std::collections::BTreeSet;

use anyhow::ensure;
use axum::Json;
use axum::response::IntoResponse;
use utoipa::openapi::Server;
use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::Answer;
use super::call::Call;
use super::route::Route;

/// The document.
#[derive(OpenApi)]
#[openapi(
    info(title = "Packhouse management API", license(name = "Apache-2.0")),
    paths(
        super::sessions::create, super::sessions::delete, super::sessions::confirm, super::members::me,
        super::sso::show, super::sso::change, super::sso::remove, super::sso::start, super::sso::callback,
        super::members::create, super::members::list, super::members::show, super::members::remove,
        super::members::set_permissions, super::members::reset, super::members::complete,
        super::members::invite, super::members::accept,
        super::subscribers::create_subscriber, super::subscribers::list_subscribers, super::subscribers::show_subscriber,
        super::subscribers::change_subscriber, super::subscribers::remove_subscriber,
        super::access_keys::create_for_subscriber, super::access_keys::list_for_subscriber,
        super::access_keys::change_for_subscriber, super::access_keys::revoke_for_subscriber, super::access_keys::rotate_for_subscriber,
        super::subscribers::create_group, super::subscribers::list_groups, super::subscribers::show_group,
        super::subscribers::change_group, super::subscribers::remove_group,
        super::access_keys::create_for_group, super::access_keys::list_for_group,
        super::access_keys::change_for_group, super::access_keys::revoke_for_group, super::access_keys::rotate_for_group,
        super::repositories::create, super::repositories::list, super::repositories::show,
        super::repositories::change, super::repositories::remove,
        super::tokens::create, super::tokens::list, super::tokens::revoke, super::tokens::rotate,
        super::packages::list, super::cache::show, super::cache::purge, super::cache::set_credentials,
        super::packages::versions,
        super::formats::list, super::formats::change,
        super::upkeep::delete_package, super::upkeep::delete_version, super::upkeep::mark,
        super::logins::show, super::logins::finish,
        super::audit::list, document
    ),
    components(schemas(super::error::ErrorBody)),
    security(("session" = [])),
    modifiers(&Session)
)]
pub(super) struct Document;

struct Session;

impl Modify for Session {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("POST /v1/sessions")).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("session", SecurityScheme::Http(scheme));
    }
}

/// The OpenAPI document.
#[utoipa::path(get, operation_id = "show_openapi", path = "/v1/openapi.json",
    security(()), responses((status = 200, description = "OpenAPI 3.1")))]
pub(crate) async fn document(call: Call) -> Answer {
    call.only(&[])?;
    let mut document = described(super::routes());
    document.servers = call.app.config.api_url.as_ref().map(|url| vec![Server::new(url.as_str())]);
    Ok(Json(document).into_response())
}

/// The document with the refusals that follow from the route table.
fn described(routes: &[Route]) -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    for route in routes {
        if let Some(operation) = operation(&mut document, route) {
            answers::add(operation, route);
        }
    }
    document
}

fn operation<'a>(
    document: &'a mut utoipa::openapi::OpenApi,
    route: &Route,
) -> Option<&'a mut utoipa::openapi::path::Operation> {
    let item = document.paths.paths.get_mut(route.path)?;
    match route.method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

/// Fails unless the document and the route table name the same methods and paths.
pub(super) fn agrees(routes: &[Route]) -> anyhow::Result<()> {
    let served: BTreeSet<String> =
        routes.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    let described: BTreeSet<String> = Document::openapi()
        .paths
        .paths
        .iter()
        .flat_map(|(path, item)| methods(item).into_iter().map(move |method| format!("{method} {path}")))
        .collect();
    let apart: Vec<&String> = served.symmetric_difference(&described).collect();
    ensure!(apart.is_empty(), "the route table and the OpenAPI document differ in {apart:?}");
    Ok(())
}

fn methods(item: &utoipa::openapi::PathItem) -> Vec<&'static str> {
    let all = [
        (HttpMethod::Get, item.get.is_some()),
        (HttpMethod::Post, item.post.is_some()),
        (HttpMethod::Put, item.put.is_some()),
        (HttpMethod::Patch, item.patch.is_some()),
        (HttpMethod::Delete, item.delete.is_some()),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(method, _)| name(&method)).collect()
}

fn name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Post => "POST",
        HttpMethod::Put => "PUT",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Delete => "DELETE",
        _ => "OTHER",
    }
}
