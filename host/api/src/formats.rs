//! `GET /v1/formats` and `PATCH /v1/formats/{format}`: the formats with their plugins. A format is
//! enabled or disabled for an organization without a restart, on every server at once.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_app::App;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::operations::formats::{self, LoadedFormat, MissingFormat};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(change)]
}

/// Limits of one call and one upload.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct FormatLimits {
    max_file_bytes: Option<u64>,
    memory_bytes: u64,
    call_timeout_ms: u64,
    hostcall_bytes: u64,
    handles: u64,
    concurrency: u64,
}

/// A format and its plugin.
#[derive(Serialize, ToSchema)]
pub(crate) struct FormatView {
    format: String,
    version: String,
    kinds: Vec<String>,
    /// True if its repositories are served.
    enabled: bool,
    /// True if a plugin for it is loaded. Without a plugin its repositories are not served, even if
    /// it is enabled.
    loaded: bool,
    /// The problem, for the operator; null if there is no problem.
    problem: Option<String>,
    /// SHA-256 of the plugin's file: `sha256:` and hexadecimal digits; null if none is loaded.
    digest: Option<String>,
    /// Finished plugin calls since this server started.
    calls: u64,
    /// Failed calls among them; errors of the caller do not count.
    failures: u64,
    /// True if it can delete and mark versions.
    upkeep: bool,
    limits: FormatLimits,
}

impl FormatView {
    fn new(app: &App, LoadedFormat { plugin, enabled }: &LoadedFormat) -> FormatView {
        let description = plugin.description();
        let runtime = &app.config.runtime;
        let own = runtime.per_plugin.get(&description.format).and_then(|plugin| plugin.limits.as_ref());
        let limits = own.unwrap_or(&runtime.default_limits);
        let (calls, failures) = plugin.calls();
        FormatView {
            format: description.format.clone(),
            version: plugin.version().to_owned(),
            kinds: description.kinds.clone(),
            enabled: *enabled,
            loaded: true,
            problem: None,
            digest: Some(plugin.digest().to_string()),
            calls,
            failures,
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

    /// View of a format that repositories use but for which no plugin is loaded.
    fn missing(app: &App, missing: MissingFormat) -> FormatView {
        let MissingFormat { format, repositories, is_awaited } = missing;
        let folder = app.config.runtime.plugins.display();
        let problem = if is_awaited {
            format!(
                "Plugins are still being compiled, possibly the one for this format; {repositories} \
                 repositories wait for it."
            )
        } else {
            format!(
                "The folder {folder} contains no plugin for this format; {repositories} repositories need it."
            )
        };
        FormatView {
            problem: Some(problem),
            format,
            version: String::new(),
            kinds: Vec::new(),
            enabled: false,
            loaded: false,
            digest: None,
            calls: 0,
            failures: 0,
            upkeep: false,
            limits: FormatLimits::default(),
        }
    }
}

/// Lists the formats of loaded plugins with their limits and state, and the formats of repositories
/// without a loaded plugin.
#[utoipa::path(get, path = "/v1/formats", operation_id = "list_formats",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Plugins))),
    params(("limit" = Option<u32>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Page<FormatView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let known = formats::list(call.actor()?).await?;
    let loaded = known.loaded.iter().map(|format| FormatView::new(&call.app, format));
    let missing = known.missing.into_iter().map(|format| FormatView::missing(&call.app, format));
    let items = loaded.chain(missing).collect();
    Ok(Json(paging::page_of(&call, items, |format: &FormatView| format.format.clone())?).into_response())
}

/// A change of a format.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeFormat {
    enabled: bool,
}

/// Enables or disables a format in the caller's organization. While it is disabled, its
/// repositories answer 503 `format_disabled`; their content stays.
#[utoipa::path(patch, path = "/v1/formats/{format}", operation_id = "change_format",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path)),
    request_body = ChangeFormat,
    responses((status = 200, body = FormatView)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeFormat = call.body()?;
    call.only(&[])?;
    let changed = formats::switch(call.actor()?, call.path("format"), body.enabled).await?;
    Ok(Json(FormatView::new(&call.app, &changed)).into_response())
}
