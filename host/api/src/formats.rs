//! `GET /v1/formats` and `PATCH /v1/formats/{format}`: the plugins as operators see them, and switching a format on or off for
//! an organization, without a restart and on every server at once.

use std::sync::Arc;

use axum::Json;
use axum::response::IntoResponse;
use packhouse_runtime::Plugin;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Answer;
use super::call::Call;
use super::error::ApiError;
use packhouse_app::App;
use packhouse_wire::catalogue;

/// Bounds of one call and one upload.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct FormatLimits {
    max_file_bytes: Option<u64>,
    memory_bytes: u64,
    call_timeout_ms: u64,
    hostcall_bytes: u64,
    handles: u64,
    concurrency: u64,
}

/// One plugin.
#[derive(Serialize, ToSchema)]
pub(crate) struct FormatView {
    format: String,
    version: String,
    kinds: Vec<String>,
    /// Whether its repositories are served.
    enabled: bool,
    /// Whether a plugin of it is loaded. Without one its repositories are not served, whatever was switched.
    loaded: bool,
    /// What is amiss, for the operator; null where nothing is.
    problem: Option<String>,
    /// Whether it can delete and mark versions.
    upkeep: bool,
    limits: FormatLimits,
}

impl FormatView {
    fn new(app: &App, plugin: &Plugin, switched: Option<bool>) -> FormatView {
        let description = plugin.description();
        let runtime = &app.config.runtime;
        let own = runtime.per_plugin.get(&description.format).and_then(|plugin| plugin.limits.as_ref());
        let limits = own.unwrap_or(&runtime.default_limits);
        FormatView {
            format: description.format.clone(),
            version: plugin.version().to_owned(),
            kinds: description.kinds.clone(),
            enabled: app.enabled(&description.format, switched),
            loaded: true,
            problem: None,
            upkeep: plugin.has_upkeep(),
            limits: FormatLimits {
                max_file_bytes: plugin.max_file_bytes(),
                memory_bytes: limits.memory_bytes as u64,
                call_timeout_ms: u64::try_from(limits.call_timeout.as_millis()).unwrap_or(u64::MAX),
                hostcall_bytes: limits.hostcall_bytes as u64,
                handles: limits.handles as u64,
                concurrency: plugin.concurrency() as u64,
            },
        }
    }

    /// A format that repositories have and no plugin is loaded of.
    fn missing(app: &App, format: String, repositories: u64) -> FormatView {
        let folder = app.config.runtime.plugins.display();
        FormatView {
            problem: Some(format!(
                "No plugin of this format is in the folder {folder}; {repositories} repositories need it."
            )),
            format,
            version: String::new(),
            kinds: Vec::new(),
            enabled: false,
            loaded: false,
            upkeep: false,
            limits: FormatLimits::default(),
        }
    }
}

/// Every format.
#[derive(Serialize, ToSchema)]
pub(crate) struct Formats {
    items: Vec<FormatView>,
    /// Always null: there are few.
    next: Option<String>,
}

/// Lists the loaded plugins with their limits and state, and the formats of repositories that no plugin is loaded of.
#[utoipa::path(get, operation_id = "list_formats", path = "/v1/formats",
    responses((status = 200, body = Formats)))]
pub(crate) async fn list(call: Call) -> Answer {
    call.only(&[])?;
    call.judge_permission()?;
    let switched = call.app.store.formats_enabled(call.organization()?).await?;
    let view = |plugin: &Arc<Plugin>| {
        let own = switched.iter().find(|(format, _)| *format == plugin.description().format);
        FormatView::new(&call.app, plugin, own.map(|(_, enabled)| *enabled))
    };
    let mut items: Vec<FormatView> = call.app.runtime.plugins().iter().map(view).collect();
    let used = call.app.store.formats_in_use(Some(call.organization()?)).await?;
    let missing = used.into_iter().filter(|(format, _)| call.app.runtime.plugin(format).is_none());
    items.extend(missing.map(|(format, repositories)| FormatView::missing(&call.app, format, repositories)));
    Ok(Json(Formats { items, next: None }).into_response())
}

/// A change of a format.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeFormat {
    enabled: bool,
}

/// Switches a format on or off in the caller's organization. While it is off, its repositories answer 503 `format_disabled`;
/// nothing of them is lost.
#[utoipa::path(patch, operation_id = "change_format", path = "/v1/formats/{format}",
    params(("format" = String, Path)), request_body = ChangeFormat,
    responses((status = 200, body = FormatView)))]
pub(crate) async fn change(mut call: Call) -> Answer {
    let wanted: ChangeFormat = call.body()?;
    call.only(&[])?;
    call.judge_permission()?;
    let Some(plugin) = call.app.runtime.plugin(call.path("format")) else {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    };
    let format = plugin.description().format.as_str();
    let action = if wanted.enabled { "enable_format" } else { "disable_format" };
    let event = call.event(action, format)?;
    call.app.store.set_format_enabled(call.organization()?, format, wanted.enabled, event).await?;
    Ok(Json(FormatView::new(&call.app, &plugin, Some(wanted.enabled))).into_response())
}
