//! The step handle: the plugin answers, in the instance of the step route or in one of its own, which is gone afterwards.

use std::sync::Arc;
use std::time::Instant;

use packhouse_runtime::{Action, Answer, Call, CallError, Failure, Intent, Plugin, RoutedInstance, Services};
use packhouse_store::AuditEvent;
use packhouse_upstream::CallOutcome;

use crate::error_response::HttpError;
use crate::package_reach;
use crate::plugin_failure::failed;
use crate::receive::Received;
use crate::repository_request::RepositoryRequest;
use crate::select_repositories::SelectedRepositories;
use crate::services::CallServices;
use crate::told_provenance;
use crate::trials::OnTrial;
use crate::upstream_words;

/// How often a call is begun at most.
const TRIES: u32 = 3;
/// How much of a path the audit log keeps.
const MAX_SUBJECT_BYTES: usize = 512;

/// Calls the plugin, in `instance` if there is one. Secrets that it asked for stand in the answer instead of their placeholders.
pub(crate) async fn handle(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    instance: Option<RoutedInstance<'_>>,
    repositories: SelectedRepositories,
    received: Received,
) -> Result<Answer, HttpError> {
    // Its state is large, and responses from the cache do not come here: the request path shall not carry it along.
    Box::pin(call(request, intent, instance, repositories, received)).await
}

async fn call(
    request: &RepositoryRequest<'_>,
    intent: &Intent,
    instance: Option<RoutedInstance<'_>>,
    repositories: SelectedRepositories,
    received: Received,
) -> Result<Answer, HttpError> {
    let repositories = match told_provenance::rules(request, &repositories) {
        Some(number) => Box::pin(told_provenance::tell(request, repositories, number)).await?,
        None => repositories,
    };
    let SelectedRepositories { target, others, reads } = repositories;
    let Received { body, parts, appended, moved } = received;
    let on_trial = request.on_trial.as_ref();
    let handed = on_trial.and_then(|on_trial| on_trial.handed(target.as_ref(), &others));
    let heard = on_trial.and_then(OnTrial::heard);
    let packages = intent.packages.clone();
    let services = CallServices::new(request.app, &request.plugin, request.caller(), packages, heard);
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
        packages: package_reach::bounds(request, intent),
        now: on_trial.and_then(OnTrial::now),
        ..Call::new(Arc::clone(&request.head), intent.action)
    };
    let since = Instant::now();
    let handled = handle_again(&request.plugin, instance, call, &services).await;
    if let Some(on_trial) = on_trial {
        on_trial.handled(&request.tried(), intent, handed, &handled, &services, since.elapsed());
    }
    let handled = handled.map_err(|error| failed(&request.plugin, "handle", &request.head, error))?;
    if let (true, Some(sentence)) = (is_nothing(&handled), services.refusal()) {
        return Err(HttpError::from(CallError::PolicyDenied(sentence)));
    }
    let handled = handled.map_err(|failure| upstream_words::explain(failure, &services.upstream_reports()));
    let mut answer = services.fill(handled?);
    if let (true, Some(row)) = (found_done(intent, &answer), request.found()) {
        request.app.store.settle_repository(row.id, answer.newest_found).await?;
    }
    answer.reads.extend(reads);
    Ok(answer)
}

/// What the audit log says of a change in a repository; none of what only reads.
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

/// Calls the plugin, and calls it again for a read that failed for one of two reasons: there was no room beside the calls that wait
/// for upstreams, so it waits for room; or an upstream sent what cannot be read, so it goes on with what is cached. Each further call
/// has a fresh instance.
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

/// Why the call failed, in the plugin's words.
fn reason(handled: &Result<Result<Answer, Failure>, CallError>) -> Option<&str> {
    let Ok(Err(failure)) = handled else { return None };
    failure.problems.first().map(|problem| problem.message.as_str())
}

/// Whether the plugin found that what was to be changed is as it should be. Then another has changed it, and may have gone before other
/// servers heard of it.
fn found_done(intent: &Intent, answer: &Answer) -> bool {
    intent.action.writes() && !answer.committed && matches!(answer.status, 200 | 201 | 204)
}

/// Whether the plugin answers that what is asked for is not there.
fn is_nothing(handled: &Result<Answer, Failure>) -> bool {
    let status = match handled {
        Ok(answer) => answer.status,
        Err(failure) => failure.status,
    };
    status == 404
}

/// What the end of a call says of what it read.
fn outcome(handled: &Result<Result<Answer, Failure>, CallError>) -> CallOutcome {
    match handled {
        Ok(Ok(_)) => CallOutcome::Succeeded,
        Ok(Err(failure)) if failure.status < 500 => CallOutcome::Succeeded,
        Ok(Err(_)) => CallOutcome::Suspect,
        // The plugin understood what it used: a policy refuses what comes of it.
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
