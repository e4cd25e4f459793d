//! Endpoints that describe this server's SCIM (RFC 7644, section 4).

use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_wire::catalogue;
use serde_json::{Value, json};

use super::lists::{MAX_COUNT, ScimList};
use super::{answer, base, schemas};
use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::scope::Family;

pub(super) fn endpoints() -> Vec<Described> {
    vec![
        routes!(configuration),
        routes!(list_schemas),
        routes!(show_schema),
        routes!(list_types),
        routes!(show_type),
    ]
}

/// Describes which parts of SCIM the server supports.
#[utoipa::path(get, path = "/scim/v2/ServiceProviderConfig", operation_id = "show_scim_configuration",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    responses((status = 200, body = Object, content_type = "application/scim+json")))]
async fn configuration(call: Call) -> HandlerResult {
    call.actor()?.needs(ManageMembers)?;
    let location = format!("{}/ServiceProviderConfig", base(&call));
    let supported = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": {"supported": true},
        "bulk": {"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": true, "maxResults": MAX_COUNT},
        "changePassword": {"supported": false},
        "sort": {"supported": false},
        "etag": {"supported": false},
        "authenticationSchemes": [{
            "type": "oauthbearertoken", "name": "API token", "primary": true,
            "description": "An API token of the scope scim",
        }],
        "meta": {"resourceType": "ServiceProviderConfig", "location": location},
    });
    answer(StatusCode::OK, &supported)
}

/// Lists the schemas of users and groups.
#[utoipa::path(get, path = "/scim/v2/Schemas", operation_id = "list_scim_schemas",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    responses((status = 200, body = Object, content_type = "application/scim+json")))]
async fn list_schemas(call: Call) -> HandlerResult {
    call.actor()?.needs(ManageMembers)?;
    answer(StatusCode::OK, &ScimList::whole(schemas::schemas(&base(&call))))
}

/// Returns the schema of users or groups.
#[utoipa::path(get, path = "/scim/v2/Schemas/{id}", operation_id = "show_scim_schema",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path, description = "URN of the schema")),
    responses((status = 200, body = Object, content_type = "application/scim+json")))]
async fn show_schema(call: Call) -> HandlerResult {
    call.actor()?.needs(ManageMembers)?;
    show(&call, schemas::schemas(&base(&call)))
}

/// Lists the types of resources: users and groups.
#[utoipa::path(get, path = "/scim/v2/ResourceTypes", operation_id = "list_scim_resource_types",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    responses((status = 200, body = Object, content_type = "application/scim+json")))]
async fn list_types(call: Call) -> HandlerResult {
    call.actor()?.needs(ManageMembers)?;
    answer(StatusCode::OK, &ScimList::whole(schemas::resource_types(&base(&call))))
}

/// Returns the type of users or groups.
#[utoipa::path(get, path = "/scim/v2/ResourceTypes/{id}", operation_id = "show_scim_resource_type",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path, description = "`User` or `Group`")),
    responses((status = 200, body = Object, content_type = "application/scim+json")))]
async fn show_type(call: Call) -> HandlerResult {
    call.actor()?.needs(ManageMembers)?;
    show(&call, schemas::resource_types(&base(&call)))
}

/// Response with the resource that the path names. 404 `not_found` if there is no such resource.
fn show(call: &Call, resources: Vec<Value>) -> HandlerResult {
    let named = |resource: &Value| resource.get("id").and_then(Value::as_str) == Some(call.path("id"));
    match resources.into_iter().find(named) {
        Some(resource) => answer(StatusCode::OK, &resource),
        None => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}
