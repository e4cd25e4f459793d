//! `GET /v1/formats`: the plugins as operators see them.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_runtime::Plugin;
use serde::Serialize;
use utoipa::ToSchema;

use super::Answer;
use super::call::Call;
use super::error::ErrorBody;
use crate::app::App;

/// Bounds of one call and one upload.
#[derive(Serialize, ToSchema)]
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
    enabled: bool,
    /// Whether it can delete and mark versions.
    upkeep: bool,
    limits: FormatLimits,
}

impl FormatView {
    fn new(app: &App, plugin: &Plugin) -> FormatView {
        let description = plugin.description();
        let runtime = &app.config.runtime;
        let own = runtime.per_plugin.get(&description.format).and_then(|plugin| plugin.limits.as_ref());
        let limits = own.unwrap_or(&runtime.default_limits);
        FormatView {
            format: description.format.clone(),
            version: plugin.version().to_owned(),
            kinds: description.kinds.clone(),
            enabled: app.enabled(&description.format),
            upkeep: plugin.has_upkeep(),
            limits: FormatLimits {
                max_file_bytes: plugin.max_file_bytes(),
                memory_bytes: limits.memory_bytes as u64,
                call_timeout_ms: u64::try_from(limits.call_timeout.as_millis()).unwrap_or(u64::MAX),
                hostcall_bytes: limits.hostcall_bytes as u64,
                handles: limits.handles as u64,
                concurrency: limits.concurrency as u64,
            },
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

/// Lists the loaded plugins with their limits and state.
#[utoipa::path(get, path = "/v1/formats", responses((status = 200, body = Formats),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody)))]
pub(crate) async fn list(call: Call) -> Answer {
    call.only(&[])?;
    call.judge_permission()?;
    let items = call.app.runtime.plugins().iter().map(|plugin| FormatView::new(&call.app, plugin)).collect();
    Ok(Json(Formats { items, next: None }).into_response())
}
