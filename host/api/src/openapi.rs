//! `GET /v1/openapi.json`: the description of this API, made from the code that serves it.
//!
//! A handler describes its parameters, its body, its successful responses, and refusals that few
//! endpoints have (409, 429). The module `refusals` adds the refusals that follow from the right,
//! the path and the body.

mod refusals;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use packhouse_app::App;
use utoipa::openapi::Server;
use utoipa::openapi::path::{Operation, Paths};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, Schemas, routes};
use crate::endpoint::Endpoint;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
use crate::scope::Family;
pub(crate) use refusals::complete;

/// Parts of the document other than the endpoints.
#[derive(OpenApi)]
#[openapi(
    info(title = "Packhouse management API", license(name = "Apache-2.0")),
    components(schemas(crate::error_response::ErrorBody)),
    security(("session" = [])),
    modifiers(&Credentials)
)]
struct Base;

/// Name of the security scheme of sessions. [`Base`] repeats it.
const SESSION: &str = "session";
/// Name of the security scheme of API tokens.
const API_TOKEN: &str = "api_token";

/// Adds the security schemes of sessions and API tokens.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        for (name, description) in [
            (SESSION, "Session of POST /v1/sessions"),
            (API_TOKEN, "API token of POST /v1/api-tokens with one of the scopes in `x-scope`"),
        ] {
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description));
            components.add_security_scheme(name, SecurityScheme::Http(scheme.build()));
        }
    }
}

/// Text of the document, made on the first request for it.
#[derive(Debug, Default)]
pub(crate) struct OpenApiDocument(OnceLock<Bytes>);

impl OpenApiDocument {
    fn text(&self, app: &App) -> Result<Bytes, ApiError> {
        if let Some(text) = self.0.get() {
            return Ok(text.clone());
        }
        let text = whole(app).and_then(|document| Ok(serde_json::to_vec(&document)?));
        let text = text.map_err(ApiError::Internal)?;
        Ok(self.0.get_or_init(|| text.into()).clone())
    }
}

/// Reads an endpoint and its description, as this server serves it. Fails if the description has no
/// right or no family.
pub(crate) fn endpoint<'a>(app: &App, paths: &'a mut Paths) -> anyhow::Result<(Endpoint, &'a mut Operation)> {
    read(app.config.advisories.public, paths)
}

fn read(osv_is_public: bool, paths: &mut Paths) -> anyhow::Result<(Endpoint, &mut Operation)> {
    let (mut endpoint, operation) = Endpoint::read(paths)?;
    if osv_is_public && endpoint.is_of_osv() {
        endpoint.right = Anyone;
    }
    Ok((endpoint, operation))
}

fn whole(app: &App) -> anyhow::Result<utoipa::openapi::OpenApi> {
    let path = Some(app.config.api_path()).filter(|path| !path.is_empty());
    let server = app.config.public_api_url().or_else(|| path.map(str::to_owned));
    let mut document = assembled(app.config.advisories.public)?;
    document.servers = server.map(|server| vec![Server::new(server)]);
    Ok(document)
}

/// The OpenAPI document as JSON, without the address of a server: docs/reference/api.md is
/// generated from it.
pub fn reference() -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::to_value(assembled(false)?)?)
}

fn assembled(osv_is_public: bool) -> anyhow::Result<utoipa::openapi::OpenApi> {
    let mut document = Base::openapi();
    let mut all = Schemas::new();
    for Described { mut paths, schemas, .. } in crate::endpoints() {
        let (endpoint, operation) = read(osv_is_public, &mut paths)?;
        complete(operation, &endpoint);
        schemas(&mut all);
        for (path, item) in paths.paths {
            document.paths.paths.entry(path).or_default().merge_operations(item);
        }
    }
    document.components.get_or_insert_default().schemas.extend(all);
    Ok(document)
}

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// Returns the OpenAPI document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "show_openapi",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    responses((status = 200, description = "OpenAPI 3.1")))]
async fn document(Extension(document): Extension<Arc<OpenApiDocument>>, call: Call) -> HandlerResult {
    call.only(&[])?;
    Ok(([(CONTENT_TYPE, "application/json")], document.text(&call.app)?).into_response())
}
