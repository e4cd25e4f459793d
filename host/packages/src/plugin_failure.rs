//! Failed plugin calls. The log contains the details, the client gets a 500 with the request's id,
//! and later requests are unaffected.

use packhouse_runtime::{CallError, Plugin, RequestHead};

use crate::error_response::HttpError;

/// Logs and counts a failed call. Returns the error response.
pub(crate) fn failed(
    plugin: &Plugin,
    function: &'static str,
    head: &RequestHead,
    error: CallError,
) -> HttpError {
    if error.is_callers() {
        // The caller caused this error, not the plugin. Even an unauthenticated client could repeat
        // it, so it must not fill the log.
        return HttpError::from(error);
    }
    let format = plugin.description().format.as_str();
    let (request_id, kind) = (&*head.request_id, error.kind());
    tracing::error!(request_id, plugin = format, function, kind, %error, "plugin call failed");
    metrics::counter!("packhouse_plugin_failures_total", "plugin" => format.to_owned(), "kind" => kind)
        .increment(1);
    HttpError::from(error)
}
