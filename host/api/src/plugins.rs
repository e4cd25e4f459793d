//! `/v1/plugins`: which components there are, which one each format runs, and changing that without a restart.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_app::plugins::{Capabilities, Changes, ListedPlugin};
use packhouse_identity::permissions::Permission::ManageServer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::plugins::{self, ActivationRequest, Installed, Offered};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(install), routes!(activate), routes!(roll_back), routes!(pin)]
}

/// A component.
#[derive(Serialize, ToSchema)]
pub(crate) struct PluginView {
    /// Of a file that is no plugin, its name without the ending.
    format: String,
    /// SHA-256 of the component: `sha256:` and hexadecimal digits; null of a file that is no plugin.
    digest: Option<String>,
    /// The plugin's own.
    version: Option<String>,
    /// The version of the contract that it was built for.
    contract: Option<String>,
    /// `active`, `candidate`, `retired`, `refused`, or `compiling` for one that the start has still to compile.
    state: &'static str,
    /// `upload`, the artifact in a registry by its digest, or the name of a file.
    source: String,
    /// The fingerprint of the trusted key that signed it: `SHA256:` and the hexadecimal digest of its DER form.
    signed_by: Option<String>,
    /// In ms since 1970; null for one beside the program.
    installed_at: Option<i64>,
    /// Interfaces of the contract that it calls.
    imports: Vec<String>,
    /// Interfaces of the contract that it offers.
    exports: Vec<String>,
    /// What it asks for: paths at the root, kinds of repository, settings, permissions.
    #[schema(value_type = Option<Object>)]
    capabilities: Option<Value>,
    /// Its bounds in bytes by name; null where there is none.
    #[schema(value_type = Object)]
    limits: Value,
    /// Why it cannot be run here.
    error: Option<String>,
}

impl From<ListedPlugin> for PluginView {
    fn from(plugin: ListedPlugin) -> PluginView {
        let told = plugin.told;
        let capabilities = told.as_ref().map(|told| &told.capabilities);
        PluginView {
            state: plugin.state.word(),
            capabilities: capabilities.map(shown),
            limits: capabilities.map(|asked| json!(asked.limits)).unwrap_or_default(),
            version: told.as_ref().map(|told| told.version.clone()),
            contract: told.as_ref().map(|told| told.contract.clone()),
            imports: told.as_ref().map(|told| told.imports.clone()).unwrap_or_default(),
            exports: told.map(|told| told.exports).unwrap_or_default(),
            format: plugin.format,
            digest: plugin.digest,
            source: plugin.source,
            signed_by: plugin.signed_by,
            installed_at: plugin.installed_at,
            error: plugin.error,
        }
    }
}

fn shown(asked: &Capabilities) -> Value {
    let Capabilities { claims, kinds, settings, permissions, .. } = asked;
    json!({"claims": claims, "kinds": kinds, "settings": settings, "permissions": permissions})
}

/// Every component.
#[derive(Serialize, ToSchema)]
pub(crate) struct Plugins {
    items: Vec<PluginView>,
    /// Always null: there are few.
    next: Option<String>,
}

/// What a component asks beyond the one that its format runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangesView {
    imports: Vec<String>,
    claims: Vec<String>,
    settings: Vec<String>,
    limits: Vec<String>,
    permissions: Vec<String>,
}

impl From<Changes> for ChangesView {
    fn from(changes: Changes) -> ChangesView {
        let Changes { imports, claims, settings, limits, permissions } = changes;
        ChangesView { imports, claims, settings, limits, permissions }
    }
}

/// The bytes of a component, at most 64 MiB.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "it is there for the description: the bytes are received as they come")]
pub(crate) struct ComponentBytes(Vec<u8>);

/// A component that was installed.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstalledView {
    #[serde(flatten)]
    plugin: PluginView,
    changes: ChangesView,
}

/// Lists the components of the database and those beside the program, with what each asks for, and files that are none.
#[utoipa::path(get, path = "/v1/plugins", operation_id = "list_plugins",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    responses((status = 200, body = Plugins)))]
async fn list(call: Call) -> Answer {
    call.only(&[])?;
    let items = plugins::list(call.actor()?).await?;
    Ok(Json(Plugins { items: items.into_iter().map(PluginView::from).collect(), next: None }).into_response())
}

/// Where a component is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentSource {
    /// `oci://HOST/PATH@sha256:…`; a tag in place of the digest is resolved once.
    source: String,
    /// A signature of the component's bytes, ECDSA on P-256 over SHA-256: DER, in base64. Without it one beside the artifact counts.
    #[serde(default)]
    signature: Option<String>,
    /// Of the action `manage_plugins`; good for five minutes. The header `X-Confirmation-Token` will do as well.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

/// Installs a component as a candidate: it is kept, on every server, and runs nowhere until it is activated. One that is there is
/// answered again. The component is the body, or an artifact in a registry that the body names.
#[utoipa::path(post, path = "/v1/plugins", operation_id = "install_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-confirmation" = json!(Action::ManagePlugins))),
    params(("X-Confirmation-Token" = Option<String>, Header, description = "Of the action `manage_plugins`; in place of the body's"),
        ("X-Plugin-Signature" = Option<String>, Header, description = "Beside `application/wasm`: a signature of the bytes, ECDSA on P-256 over SHA-256: DER, in base64")),
    request_body(content((ComponentBytes = "application/wasm"), (ComponentSource = "application/json"))),
    responses((status = 201, body = InstalledView),
        (status = 415, description = "`unsupported_media_type`: the body is declared neither as `application/wasm` nor as JSON", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: it cannot be fetched, is not signed by a trusted key, or cannot be run here, and why", body = ErrorBody)))]
async fn install(mut call: Call) -> Answer {
    let (offered, token) = match call.component() {
        Some(bytes) => (Offered::Component { bytes, signature: call.signature()? }, None),
        None => {
            let ComponentSource { source, signature, confirmation_token } = call.body()?;
            (Offered::Artifact { source, signature }, confirmation_token)
        }
    };
    let confirmation = call.confirmation(token.as_ref());
    call.only(&[])?;
    let Installed { plugin, changes } = plugins::install(call.actor()?, &confirmation, offered).await?;
    let view = InstalledView { plugin: plugin.into(), changes: changes.into() };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// What a format is to run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Activate {
    /// The component.
    digest: String,
    /// What the format runs until now; null where that is nothing.
    #[serde(default)]
    expected_active: Option<String>,
    /// Whether it may ask more than what runs until now.
    #[serde(default)]
    accept_changes: bool,
    /// Of the action `manage_plugins`; good for five minutes. The header `X-Confirmation-Token` will do as well.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

/// Lets a format run a component from now on, on every server. Calls in flight end on the one before.
#[utoipa::path(post, path = "/v1/plugins/{format}/activate", operation_id = "activate_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-confirmation" = json!(Action::ManagePlugins))),
    params(("format" = String, Path)),
    request_body = Activate,
    responses((status = 200, body = PluginView),
        (status = 409, description = "`conflict`: the format runs another than `expected_active`; `capabilities_changed`: it asks more", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: it cannot be run here, or is of another format", body = ErrorBody)))]
async fn activate(mut call: Call) -> Answer {
    let Activate { digest, expected_active: expected, accept_changes, confirmation_token } = call.body()?;
    call.only(&[])?;
    let request = ActivationRequest { digest, expected, accept_changes };
    let confirmation = call.confirmation(confirmation_token.as_ref());
    let plugin = plugins::activate(call.actor()?, &confirmation, call.path("format"), &request).await?;
    Ok(Json(PluginView::from(plugin)).into_response())
}

/// Lets a format run what it ran before.
#[utoipa::path(post, path = "/v1/plugins/{format}/rollback", operation_id = "roll_back_plugin",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path)),
    responses((status = 200, body = PluginView),
        (status = 409, description = "`conflict`: it ran nothing before", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: it cannot be run here", body = ErrorBody)))]
async fn roll_back(call: Call) -> Answer {
    call.only(&[])?;
    let plugin = plugins::roll_back(call.actor()?, call.path("format")).await?;
    Ok(Json(PluginView::from(plugin)).into_response())
}

/// A pin.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    /// The component; null for what the format runs.
    digest: Option<String>,
}

/// Lets a component serve one repository, whatever its format runs; with null, takes that back.
#[utoipa::path(put, path = "/v1/repositories/{id}/plugin", operation_id = "pin_plugin",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("id" = String, Path)),
    request_body = Pin,
    responses((status = 200, body = Pin),
        (status = 422, description = "`plugin_refused`: it cannot be run here, or is of another format", body = ErrorBody)))]
async fn pin(mut call: Call) -> Answer {
    let Pin { digest } = call.body()?;
    call.only(&[])?;
    plugins::pin(call.actor()?, call.path("id"), digest.as_deref()).await?;
    Ok(Json(Pin { digest }).into_response())
}
