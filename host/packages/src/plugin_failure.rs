//! A plugin's call that failed. What a plugin does wrong is told to the log; the client gets a 500 with the request's id, and the
//! next request is none the worse.

use packhouse_runtime::{CallError, Plugin, RequestHead};

use crate::error_response::HttpError;

/// Logs and counts the failure, and makes the refusal.
pub(crate) fn failed(
    plugin: &Plugin,
    function: &'static str,
    head: &RequestHead,
    error: CallError,
) -> HttpError {
    if error.is_callers() {
        // The caller's doing, which a stranger can repeat: no fault of the plugin's, and nothing to fill a log with.
        return HttpError::from(error);
    }
    let format = plugin.description().format.as_str();
    let (request_id, kind) = (&*head.request_id, error.kind());
    tracing::error!(request_id, plugin = format, function, kind, %error, "a plugin's call failed");
    metrics::counter!("packhouse_plugin_failures_total", "plugin" => format.to_owned(), "kind" => kind)
        .increment(1);
    HttpError::from(error)
}
