//! `/v1/plugins`: components, the active one of each format, and changing it without a restart.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_app::plugins::{Capabilities, Changes, ListedPlugin};
use packhouse_identity::permissions::Permission::ManageServer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::plugins::{self, ActivationRequest, Installed, PluginToInstall};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(install), routes!(activate), routes!(roll_back), routes!(pin)]
}

/// A component.
#[derive(Serialize, ToSchema)]
pub(crate) struct PluginView {
    /// Format of the component; for a file that is not a plugin, its name without the extension.
    format: String,
    /// SHA-256 of the component: `sha256:` and hexadecimal digits; null for a file that is not a
    /// plugin.
    digest: Option<String>,
    /// Version of the plugin.
    version: Option<String>,
    /// Version of the contract for which it was built.
    contract: Option<String>,
    /// `active`, `candidate`, `retired`, `refused`, or `compiling` while the starting server has
    /// not compiled it yet.
    state: &'static str,
    /// `upload`, the artifact in a registry by its digest, or the name of a file.
    source: String,
    /// Fingerprint of the trusted key that signed it: `SHA256:` and the hexadecimal digest of its
    /// DER form.
    signed_by: Option<String>,
    /// Time of installation in ms since 1970; null for a component beside the program.
    installed_at: Option<i64>,
    /// Interfaces of the contract that it calls.
    imports: Vec<String>,
    /// Interfaces of the contract that it offers.
    exports: Vec<String>,
    /// Capabilities that it requests: paths at the root, kinds of repository, settings,
    /// permissions.
    #[schema(value_type = Option<Object>)]
    capabilities: Option<Value>,
    /// Its limits in bytes by name; null for no limit.
    #[schema(value_type = Object)]
    limits: Value,
    /// Reason why it cannot run on this server.
    error: Option<String>,
}

impl From<ListedPlugin> for PluginView {
    fn from(plugin: ListedPlugin) -> PluginView {
        let declared = plugin.facts;
        let capabilities = declared.as_ref().map(|declared| &declared.capabilities);
        PluginView {
            state: plugin.state.word(),
            capabilities: capabilities.map(capabilities_view),
            limits: capabilities.map(|requested| json!(requested.limits)).unwrap_or_default(),
            version: declared.as_ref().map(|declared| declared.version.clone()),
            contract: declared.as_ref().map(|declared| declared.contract.clone()),
            imports: declared.as_ref().map(|declared| declared.imports.clone()).unwrap_or_default(),
            exports: declared.map(|declared| declared.exports).unwrap_or_default(),
            format: plugin.format,
            digest: plugin.digest,
            source: plugin.source,
            signed_by: plugin.signed_by,
            installed_at: plugin.installed_at,
            error: plugin.error,
        }
    }
}

fn capabilities_view(requested: &Capabilities) -> Value {
    let Capabilities { claims, kinds, settings, permissions, .. } = requested;
    json!({"claims": claims, "kinds": kinds, "settings": settings, "permissions": permissions})
}

/// Capabilities that a component requests beyond those of the active one.
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
#[allow(dead_code, reason = "only the OpenAPI description uses it; the bytes are received as a stream")]
pub(crate) struct ComponentBytes(Vec<u8>);

/// An installed component.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstalledView {
    #[serde(flatten)]
    plugin: PluginView,
    changes: ChangesView,
}

/// Lists the components in the database and beside the program, with the capabilities that each
/// requests, and files that are not components.
#[utoipa::path(get, path = "/v1/plugins", operation_id = "list_plugins",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("limit" = Option<u32>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Page<PluginView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let items = plugins::list(call.actor()?).await?.into_iter().map(PluginView::from).collect();
    let key = |plugin: &PluginView| {
        [&plugin.format, plugin.digest.as_deref().unwrap_or_default(), &plugin.source].join(" ")
    };
    Ok(Json(paging::page_of(&call, items, key)?).into_response())
}

/// Location of a component.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentSource {
    /// `oci://HOST/PATH@sha256:…`; a tag instead of the digest is resolved once.
    source: String,
    /// Signature of the component's bytes: ECDSA on P-256 over SHA-256, as DER in base64. Without
    /// it, the server uses a signature beside the artifact.
    #[serde(default)]
    signature: Option<String>,
    /// Confirmation token for the action `manage_plugins`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

/// Installs a component as a candidate on every server; it does not run until it is activated.
/// Installing the same component again returns it again. The body is the component itself, or names
/// an artifact in a registry.
#[utoipa::path(post, path = "/v1/plugins", operation_id = "install_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins)),
        ("x-confirmation" = json!(Action::ManagePlugins))),
    params(("X-Confirmation-Token" = Option<String>, Header, description = "Confirmation token for the \
        action `manage_plugins`; used instead of the one in the body"),
        ("X-Plugin-Signature" = Option<String>, Header, description = "With `application/wasm`: signature \
            of the bytes, ECDSA on P-256 over SHA-256, as DER in base64")),
    request_body(content((ComponentBytes = "application/wasm"), (ComponentSource = "application/json"))),
    responses((status = 201, body = InstalledView),
        (status = 415, description = "`unsupported_media_type`: the body is not declared as \
            `application/wasm` or JSON", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: the component cannot be fetched, is not signed by \
            a trusted key, or cannot run on this server; see `error`", body = ErrorBody)))]
async fn install(mut call: Call) -> HandlerResult {
    let (offered, token) = match call.component() {
        Some(bytes) => (PluginToInstall::Component { bytes, signature: call.signature()? }, None),
        None => {
            let ComponentSource { source, signature, confirmation_token } = call.body()?;
            (PluginToInstall::Artifact { source, signature }, confirmation_token)
        }
    };
    let confirmation = call.confirmation(token.as_ref());
    call.only(&[])?;
    let Installed { plugin, changes } = plugins::install(call.actor()?, &confirmation, offered).await?;
    let view = InstalledView { plugin: plugin.into(), changes: changes.into() };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Activation of a component.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Activate {
    /// The component.
    digest: String,
    /// The component that is active now; null if no component is active.
    #[serde(default)]
    expected_active: Option<String>,
    /// True to accept that it requests more than the active component.
    #[serde(default)]
    accept_changes: bool,
    /// Confirmation token for the action `manage_plugins`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

/// Activates a component for a format on every server. Calls in flight finish on the previous
/// component.
#[utoipa::path(post, path = "/v1/plugins/{format}/activate", operation_id = "activate_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins)),
        ("x-confirmation" = json!(Action::ManagePlugins))),
    params(("format" = String, Path)),
    request_body = Activate,
    responses((status = 200, body = PluginView),
        (status = 409, description = "`conflict`: the active component is not `expected_active`; \
            `capabilities_changed`: the component requests more than the active one", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: the component cannot run on this server, or \
            belongs to another format", body = ErrorBody)))]
async fn activate(mut call: Call) -> HandlerResult {
    let Activate { digest, expected_active: expected, accept_changes, confirmation_token } = call.body()?;
    call.only(&[])?;
    let request = ActivationRequest { digest, expected, accept_changes };
    let confirmation = call.confirmation(confirmation_token.as_ref());
    let plugin = plugins::activate(call.actor()?, &confirmation, call.path("format"), &request).await?;
    Ok(Json(PluginView::from(plugin)).into_response())
}

/// Activates the component that the format ran before.
#[utoipa::path(post, path = "/v1/plugins/{format}/rollback", operation_id = "roll_back_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path)),
    responses((status = 200, body = PluginView),
        (status = 409, description = "`conflict`: the format has no earlier component", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: the component cannot run on this server", body = ErrorBody)))]
async fn roll_back(call: Call) -> HandlerResult {
    call.only(&[])?;
    let plugin = plugins::roll_back(call.actor()?, call.path("format")).await?;
    Ok(Json(PluginView::from(plugin)).into_response())
}

/// A pinned component.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    /// The component; null for the active component of the format.
    digest: Option<String>,
}

/// Pins a component for one repository, whatever component its format runs. With null, removes the
/// pin.
#[utoipa::path(put, path = "/v1/repositories/{id}/plugin", operation_id = "pin_plugin",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("id" = String, Path)),
    request_body = Pin,
    responses((status = 200, body = Pin),
        (status = 422, description = "`plugin_refused`: the component cannot run on this server, or \
            belongs to another format", body = ErrorBody)))]
async fn pin(mut call: Call) -> HandlerResult {
    let Pin { digest } = call.body()?;
    call.only(&[])?;
    plugins::pin(call.actor()?, call.path("id"), digest.as_deref()).await?;
    Ok(Json(Pin { digest }).into_response())
}
