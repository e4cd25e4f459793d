//! The step handle: the plugin answers the request. It runs in the instance that ran `route`, or in
//! a fresh instance. The instance is dropped afterwards.

use std::sync::Arc;

use packhouse_runtime::{Action, Answer, Call, CallError, Failure, Intent, Plugin, RoutedInstance, Services};
use packhouse_store::AuditEvent;
use packhouse_upstream::CallOutcome;

use crate::error_response::HttpError;
use crate::package_limits;
use crate::plugin_failure::failed;
use crate::provenance_flag;
use crate::receive::ReceivedBody;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;
use crate::services::CallServices;
use crate::upstream_errors;

/// Maximum number of calls of the plugin for one request.
const TRIES: u32 = 3;
/// Maximum size of a path in the audit log, in bytes.
const MAX_SUBJECT_BYTES: usize = 512;

/// Calls the plugin, in `instance` if there is one. Replaces the placeholders in the plugin's
/// answer with the secrets for which they stand.
pub(crate) async fn handle(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    instance: Option<RoutedInstance<'_>>,
    repositories: SelectedRepositories,
    received: ReceivedBody,
) -> Result<Answer, HttpError> {
    // Boxed, because the state is large. Cached responses do not come here, so the request path
    // need not carry this state.
    Box::pin(call(request, intent, instance, repositories, received)).await
}

async fn call(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    instance: Option<RoutedInstance<'_>>,
    repositories: SelectedRepositories,
    received: ReceivedBody,
) -> Result<Answer, HttpError> {
    let repositories = match provenance_flag::rules(request, &repositories) {
        Some(number) => Box::pin(provenance_flag::add_flags(request, repositories, number)).await?,
        None => repositories,
    };
    let SelectedRepositories { target, others, reads } = repositories;
    let ReceivedBody { body, parts, appended, moved } = received;
    let packages = intent.packages.clone();
    let services = CallServices::new(request.app, &request.plugin, request.caller(), packages);
    let call = Call {
        target,
        others,
        body,
        parts,
        appended,
        moved,
        audit: audit_event(request, intent.action),
        services: Services::of(&services),
        for_publish: intent.for_publish,
        packages: package_limits::bounds(request, intent),
        ..Call::new(Arc::clone(&request.head), intent.action)
    };
    let handled = handle_again(&request.plugin, instance, call, &services).await;
    let handled = handled.map_err(|error| failed(&request.plugin, "handle", &request.head, error))?;
    if let (true, Some(sentence)) = (is_not_found(&handled), services.refusal()) {
        return Err(HttpError::from(CallError::PolicyDenied(sentence)));
    }
    let handled = handled.map_err(|failure| upstream_errors::explain(failure, &services.upstream_reports()));
    let mut answer = services.fill(handled?);
    if let (true, Some(row)) = (found_nothing_to_change(intent, &answer), request.found()) {
        request.app.store.settle_repository(row.id, answer.newest_found).await?;
    }
    answer.reads.extend(reads);
    Ok(answer)
}

/// Returns the audit event for a change in a repository, or `None` for reads.
fn audit_event(request: &RepositoryRequest<'_>, action: Action) -> Option<AuditEvent> {
    let repository = request.found()?;
    let name = match action {
        Action::Publish => "publish",
        Action::Delete => "delete",
        Action::Open | Action::Read => return None,
    };
    let mut subject = format!("{}/{}", repository.name, request.head.path.join("/"));
    subject.truncate(subject.floor_char_boundary(MAX_SUBJECT_BYTES));
    Some(AuditEvent {
        organization: repository.organization,
        actor: request.principal.caller.as_deref().unwrap_or_default().to_owned(),
        credential: request.principal.credential.as_deref().unwrap_or_default().to_owned(),
        action: name.to_owned(),
        subject,
        address: request.peer.to_string(),
        request_id: request.head.request_id.to_string(),
        detail: String::new(),
    })
}

/// Calls the plugin. If a read fails, a fresh instance repeats it for one of two reasons. If calls
/// that wait for upstreams took all the room, the repeated call waits for room. If an upstream sent
/// unreadable data, the repeated call uses cached data.
async fn handle_again(
    plugin: &Plugin,
    mut instance: Option<RoutedInstance<'_>>,
    call: Call,
    services: &CallServices,
) -> Result<Result<Answer, Failure>, CallError> {
    let reads = call.action == Action::Read && call.body.is_none();
    for _ in 1..TRIES {
        let handled = match instance.take() {
            Some(instance) => instance.handle(call.clone()).await,
            None => plugin.handle(call.clone()).await,
        };
        if !services.end(outcome(&handled), reason(&handled)).await || !reads {
            return handled;
        }
    }
    let handled = plugin.handle(call).await;
    services.end(outcome(&handled), reason(&handled)).await;
    handled
}

/// Returns the plugin's message for a failed call.
fn reason(handled: &Result<Result<Answer, Failure>, CallError>) -> Option<&str> {
    let Ok(Err(failure)) = handled else { return None };
    failure.problems.first().map(|problem| problem.message.as_str())
}

/// Reports whether the plugin found that the repository already contains the requested change. Then
/// another request made the change, and its server may have stopped before it notified the other
/// servers.
fn found_nothing_to_change(intent: &Intent, answer: &Answer) -> bool {
    intent.action.writes() && !answer.committed && matches!(answer.status, 200 | 201 | 204)
}

/// Reports whether the plugin answered 404.
fn is_not_found(handled: &Result<Answer, Failure>) -> bool {
    let status = match handled {
        Ok(answer) => answer.status,
        Err(failure) => failure.status,
    };
    status == 404
}

/// Returns the result of a call for the upstream cache: whether the call could use the data from
/// upstreams.
fn outcome(handled: &Result<Result<Answer, Failure>, CallError>) -> CallOutcome {
    match handled {
        Ok(Ok(_)) => CallOutcome::Succeeded,
        Ok(Err(failure)) if failure.status < 500 => CallOutcome::Succeeded,
        Ok(Err(_)) => CallOutcome::Suspect,
        // The plugin understood the data, but a policy refused the result.
        Err(CallError::PolicyDenied(_)) => CallOutcome::Succeeded,
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
