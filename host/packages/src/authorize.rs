//! The step authorize: checks that the caller may do what the request asks for, and decides who
//! sees a plugin's refusal. This step runs for each request, even if the response comes from the
//! cache.

use std::sync::Arc;

use packhouse_identity::access::{AccessAction, RepositoryKind};
use packhouse_runtime::Intent;
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::access_request as access;
use crate::bearer_scope::BearerScope;
use crate::credential::PresentedCredential;
use crate::error_response::{ChallengeError, HttpError};
use crate::package_grants;
use crate::package_limits;
use crate::repository_request::{NamedRepository, RepositoryRequest};
use crate::route::RouteIntent;

/// Returns the intent if the caller may carry it out, otherwise the response that refuses it. The
/// credential is judged before the names: without a credential, the response must not depend on
/// whether a name is valid.
pub(crate) fn authorize(
    request: &RepositoryRequest<'_>,
    route_intent: RouteIntent,
) -> Result<Arc<Intent>, HttpError> {
    match &request.repository {
        None => without_repository(request, route_intent),
        Some(NamedRepository::Found(row)) => in_repository(request, row, route_intent),
        Some(NamedRepository::Missing(name)) => Err(missing(request, name, route_intent)),
        // The repository is not disclosed to this caller, but the format lets everyone make this
        // request.
        Some(NamedRepository::Undisclosed { .. }) => route_intent,
    }
}

/// Authorizes a request in a repository. Only callers who may read here see the plugin's own
/// refusal of a path. A write to a proxy or a group gets the refusal for that kind of repository,
/// whatever its path is.
fn in_repository(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    route_intent: RouteIntent,
) -> Result<Arc<Intent>, HttpError> {
    match route_intent {
        Ok(intent) => {
            admit(request, row, &intent)?;
            Ok(intent)
        }
        Err(refused) => {
            judge(request, row, AccessAction::Read { for_publish: true })?;
            let by_method = access::action_by_method(&request.head.method);
            if RepositoryKind::of(&row.kind) != RepositoryKind::Hosted && by_method.writes() {
                judge(request, row, by_method)?;
            }
            Err(refused)
        }
    }
}

/// Admits a request and records the use of its token or key. If a bearer token lacks the required
/// scope, the challenge names the scope.
fn admit(request: &RepositoryRequest<'_>, row: &RepositoryRow, intent: &Intent) -> Result<(), HttpError> {
    let required = access::required_action(intent);
    let (name, subject) = (row.name.as_str(), intent.subject.as_deref());
    let scope = || request.scopes().and_then(|scopes| scopes.text(name, subject, required));
    let lacks = match &request.principal.bearer_scope {
        BearerScope::Granted(grants) => !grants.iter().any(|grant| grant.covers(name, subject, required)),
        BearerScope::Direct | BearerScope::Refused => false,
    };
    let challenge_error = || bearer_error(request, lacks);
    judge(request, row, required).map_err(|refused| refused.with_challenge(scope(), challenge_error()))?;
    if lacks && required != AccessAction::Open {
        return Err(HttpError::of(&catalogue::UNAUTHORIZED).with_challenge(scope(), challenge_error()));
    }
    if let Some(grants) = &request.principal.grants {
        package_grants::judge_read(request, row, intent, grants)?;
    }
    package_limits::judge(request, row, intent)?;
    if required.writes() && *request.app.live.read_only.get() {
        return Err(HttpError::of(&catalogue::READ_ONLY));
    }
    if let Some(token) = &request.principal.facts.token {
        request.app.store.token_used(token.id, request.now);
    }
    if let Some(key) = &request.principal.facts.key {
        request.app.store.access_key_used(key.id, request.now);
    }
    Ok(())
}

/// Returns the error about the presented credential for a bearer challenge.
fn bearer_error(request: &RepositoryRequest<'_>, scope: bool) -> ChallengeError {
    let sent = PresentedCredential::read(&request.parts.headers);
    let as_bearer = matches!(sent, PresentedCredential::Bearer(_));
    ChallengeError::of(&request.principal.bearer_scope, as_bearer, scope)
}

fn judge(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    required: AccessAction,
) -> Result<(), HttpError> {
    let rules = access::rules(Some(request.description()));
    let facts = access::facts(row, true);
    // The challenge equals that for a repository that does not exist, so it does not disclose that
    // this repository exists.
    access::authorize(&request.principal.presented, &rules, required, Some(facts), request.now)
        .map_err(|refused| refused.with_challenge(None, bearer_error(request, false)))
}

/// Authorizes a request below a claim that names no repository. `read` requires only a valid
/// credential, and `open` requires nothing.
fn without_repository(
    request: &RepositoryRequest<'_>,
    route_intent: RouteIntent,
) -> Result<Arc<Intent>, HttpError> {
    let required = match &route_intent {
        Ok(intent) => access::required_action(intent),
        Err(_) => AccessAction::Read { for_publish: true },
    };
    judge_credential(request, required, None)?;
    route_intent
}

/// Refuses a request for a repository that does not exist. Without a credential, the refusal and
/// its scope equal those for a private repository.
fn missing(request: &RepositoryRequest<'_>, name: &str, route_intent: RouteIntent) -> HttpError {
    let required = match &route_intent {
        // Even an open request needs an existing repository, so it is judged as a read.
        Ok(intent) if access::required_action(intent) == AccessAction::Open => {
            AccessAction::Read { for_publish: false }
        }
        Ok(intent) => access::required_action(intent),
        Err(_) => access::action_by_method(&request.head.method),
    };
    let scope = || {
        let subject = route_intent.as_ref().ok()?.subject.as_deref();
        request.scopes()?.text(name, subject, required)
    };
    if let Err(refused) = judge_credential(request, required, Some(&scope)) {
        return refused;
    }
    if !packhouse_wire::path::is_repository_name(name) {
        return HttpError::of(&catalogue::NO_REPOSITORY_NAME);
    }
    match route_intent {
        Err(refused) if refused.is_malformed() => refused,
        _ => HttpError::of(&catalogue::NOT_FOUND),
    }
}

/// Judges only the credential. `scope` returns the scope that the challenge names.
fn judge_credential(
    request: &RepositoryRequest<'_>,
    required: AccessAction,
    scope: Option<&dyn Fn() -> Option<String>>,
) -> Result<(), HttpError> {
    let rules = access::rules(Some(request.description()));
    access::authorize_credential(&request.principal.presented, &rules, required, request.now).map_err(
        |refused| {
            let challenge_error = bearer_error(request, false);
            refused.with_challenge(scope.and_then(|scope| scope()), challenge_error)
        },
    )
}
