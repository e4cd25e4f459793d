//! `GET /v1/openapi.json`: the description of this API, from the code that serves it.
//!
//! A handler describes its parameters, its body, its answers of success, and those refusals that few others have (409, 429).
//! Refusals that follow from its right, path and body are added here (`answers`).

mod answers;

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

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, Schemas, routes};
use crate::endpoint::Endpoint;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
pub(crate) use answers::complete;

/// What the document says besides its endpoints.
#[derive(OpenApi)]
#[openapi(
    info(title = "Packhouse management API", license(name = "Apache-2.0")),
    components(schemas(crate::error_response::ErrorBody)),
    security(("session" = [])),
    modifiers(&Session)
)]
struct Base;

struct Session;

impl Modify for Session {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("POST /v1/sessions")).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("session", SecurityScheme::Http(scheme));
    }
}

/// The document's text, which is made when somebody asks for it first.
#[derive(Debug, Default)]
pub(crate) struct Document(OnceLock<Bytes>);

impl Document {
    fn text(&self, app: &App) -> Result<Bytes, ApiError> {
        if let Some(text) = self.0.get() {
            return Ok(text.clone());
        }
        let text = whole(app).and_then(|document| Ok(serde_json::to_vec(&document)?));
        let text = text.map_err(ApiError::Internal)?;
        Ok(self.0.get_or_init(|| text.into()).clone())
    }
}

/// The endpoint of this description, and the description. Fails where it describes no right.
pub(crate) fn endpoint<'a>(app: &App, paths: &'a mut Paths) -> anyhow::Result<(Endpoint, &'a mut Operation)> {
    let (mut endpoint, operation) = Endpoint::read(paths)?;
    if app.config.advisories.public && endpoint.is_of_osv() {
        endpoint.right = Anyone;
    }
    Ok((endpoint, operation))
}

fn whole(app: &App) -> anyhow::Result<utoipa::openapi::OpenApi> {
    let mut document = Base::openapi();
    let path = Some(app.config.api_path()).filter(|path| !path.is_empty());
    let server = app.config.public_api_url().or_else(|| path.map(str::to_owned));
    document.servers = server.map(|server| vec![Server::new(server)]);
    let mut all = Schemas::new();
    for Described { mut paths, schemas, .. } in crate::endpoints() {
        let (endpoint, operation) = endpoint(app, &mut paths)?;
        complete(operation, &endpoint);
        schemas(&mut all);
        for (path, item) in paths.paths {
            document.paths.paths.entry(path).or_default().merge_operations(item);
        }
    }
    document.components.get_or_insert_default().schemas.extend(all);
    Ok(document)
}

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// The OpenAPI document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "show_openapi",
    extensions(("x-right" = json!(Anyone))),
    responses((status = 200, description = "OpenAPI 3.1")))]
async fn document(Extension(document): Extension<Arc<Document>>, call: Call) -> Answer {
    call.only(&[])?;
    Ok(([(CONTENT_TYPE, "application/json")], document.text(&call.app)?).into_response())
}
