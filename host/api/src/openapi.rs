//! `GET /v1/openapi.json`: the description of this API, from the code that serves it.
//!
//! A handler describes its parameters, its body, its answers of success, and those refusals that few others have (409, 429).
//! Refusals that follow from its right, path and body are added here (`answers`).

mod answers;

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::{Extension, Json};
use packhouse_app::App;
use utoipa::openapi::Server;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use crate::Answer;
use crate::call::Call;
use crate::endpoint::Right::Anyone;
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

/// The document before the endpoints are added.
pub(crate) fn base(app: &App) -> utoipa::openapi::OpenApi {
    let mut document = Base::openapi();
    document.servers = app.config.api_url.as_ref().map(|url| vec![Server::new(url.as_str())]);
    document
}

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<UtoipaMethodRouter> {
    vec![routes!(document)]
}

/// The OpenAPI document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "show_openapi",
    extensions(("x-right" = json!(Anyone))),
    responses((status = 200, description = "OpenAPI 3.1")))]
async fn document(Extension(document): Extension<Arc<utoipa::openapi::OpenApi>>, call: Call) -> Answer {
    call.only(&[])?;
    Ok(Json(&*document).into_response())
}
