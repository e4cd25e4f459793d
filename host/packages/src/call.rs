//! Call: the plugin's part in a request. What a plugin does wrong is told to the log; the client gets a 500 with the request's
//! id, and the next request is none the worse.

use std::sync::Arc;

use packhouse_runtime::{
    Action, Answer, Call, CallError, Failure, Intent, Plugin, RepositoryView, RequestHead, Services,
};
use packhouse_store::AuditEvent;

use crate::receive::Received;
use crate::services::CallServices;
use crate::shape::Refused;
use packhouse_upstream::CallOutcome;

/// How often a call is begun at most.
const TRIES: u32 = 3;

/// What the request would do; the inner error is the plugin's own refusal.
pub(crate) async fn route(
    plugin: &Plugin,
    kind: &str,
    head: &Arc<RequestHead>,
) -> Result<Result<Intent, Refused>, Refused> {
    let routed = plugin.route(kind, head).await.map_err(|error| failed(plugin, "route", head, error))?;
    Ok(routed.map_err(Refused::from))
}

/// Whether the request can succeed, before its body is received.
pub(crate) async fn check(
    plugin: &Plugin,
    head: &Arc<RequestHead>,
    action: Action,
    (target, others): (Option<RepositoryView>, Vec<RepositoryView>),
) -> Result<(), Refused> {
    let call = Call { target, others, ..Call::new(Arc::clone(head), action) };
    let checked = plugin.check(call).await.map_err(|error| failed(plugin, "check", head, error))?;
    checked.map_err(Refused::from)
}

/// The answer.
pub(crate) async fn handle(
    plugin: &Plugin,
    head: &Arc<RequestHead>,
    intent: &Intent,
    (target, others): (Option<RepositoryView>, Vec<RepositoryView>),
    received: Received,
    audit: Option<AuditEvent>,
    services: Arc<CallServices>,
) -> Result<Answer, Refused> {
    let Received { body, parts, appended } = received;
    let call = Call {
        target,
        others,
        body,
        parts,
        appended,
        audit,
        services: Services::of(&services),
        for_publish: intent.for_publish,
        ..Call::new(Arc::clone(head), intent.action)
    };
    let handled = handle_again(plugin, call, &services).await;
    let handled = handled.map_err(|error| failed(plugin, "handle", head, error))?;
    handled.map(|answer| services.fill(answer)).map_err(Refused::from)
}

/// A read for which there was no room beside those that wait for upstreams, or to which an upstream sent what cannot be read, is
/// begun again: when there is room, or with what is kept.
async fn handle_again(
    plugin: &Plugin,
    call: Call,
    services: &CallServices,
) -> Result<Result<Answer, Failure>, CallError> {
    let reads = call.action == Action::Read && call.body.is_none();
    for _ in 1..TRIES {
        let handled = plugin.handle(call.clone()).await;
        if !services.end(outcome(&handled)).await || !reads {
            return handled;
        }
    }
    let handled = plugin.handle(call).await;
    services.end(outcome(&handled)).await;
    handled
}

/// What the end of a call says of what it read.
fn outcome(handled: &Result<Result<Answer, Failure>, CallError>) -> CallOutcome {
    match handled {
        Ok(Ok(_)) => CallOutcome::Succeeded,
        Ok(Err(failure)) if failure.status < 500 => CallOutcome::Succeeded,
        Ok(Err(_)) => CallOutcome::Suspect,
        Err(
            CallError::Store(_)
            | CallError::Busy(_)
            | CallError::NotOffered(_)
            | CallError::TooMany { .. }
            | CallError::Host(_),
        ) => CallOutcome::Unrelated,
        Err(_) => CallOutcome::Suspect,
    }
}

fn failed(plugin: &Plugin, function: &'static str, head: &RequestHead, error: CallError) -> Refused {
    if matches!(error, CallError::TooMany { .. }) {
        // The caller's doing, which a stranger can repeat: no fault of the plugin's, and nothing to fill a log with.
        return Refused::from(error);
    }
    let format = plugin.description().format.as_str();
    let (request_id, kind) = (head.request_id.as_str(), error.kind());
    tracing::error!(request_id, plugin = format, function, kind, %error, "a plugin's call failed");
    metrics::counter!("packhouse_plugin_failures_total", "plugin" => format.to_owned(), "kind" => kind)
        .increment(1);
    Refused::from(error)
}
