//! The step authorize: whether the caller may do what the request would do, and who may be told of a plugin's refusal. Access is
//! decided anew for each request, also for one that is answered from the cache.

use std::sync::Arc;

use packhouse_identity::access::{AccessAction, Kind};
use packhouse_runtime::Intent;
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::access_request as access;
use crate::bearer_scope::BearerScope;
use crate::credential::PresentedCredential;
use crate::error_response::{HttpError, MissingScope};
use crate::package_reach;
use crate::repository_request::{NamedRepository, RepositoryRequest};
use crate::route::Told;

/// The intent, if the caller may do what it says; else the refusal as it is answered. The credential is judged before the names:
/// who shows none learns nothing of what is wrong with a name.
pub(crate) fn authorize(request: &RepositoryRequest<'_>, told: Told) -> Result<Arc<Intent>, HttpError> {
    match &request.repository {
        None => without_repository(request, told),
        Some(NamedRepository::Found(row)) => in_repository(request, row, told),
        Some(NamedRepository::Missing(name)) => Err(missing(request, name, told)),
        // It was opened to anybody.
        Some(NamedRepository::Undisclosed { .. }) => told,
    }
}

/// The plugin's own refusal of a path is told to those who may read here, and a write to what has no storage is refused as such
/// whatever its path.
fn in_repository(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    told: Told,
) -> Result<Arc<Intent>, HttpError> {
    match told {
        Ok(intent) => {
            admit(request, row, &intent)?;
            Ok(intent)
        }
        Err(refused) => {
            judge(request, row, AccessAction::Read { for_publish: true })?;
            let by_method = access::wanted_by_method(&request.head.method);
            if Kind::of(&row.kind) != Kind::Hosted && by_method.writes() {
                judge(request, row, by_method)?;
            }
            Err(refused)
        }
    }
}

/// Lets a request in, and notes that its token or key was used. A bearer that was not given for it is told which scope it lacks.
fn admit(request: &RepositoryRequest<'_>, row: &RepositoryRow, intent: &Intent) -> Result<(), HttpError> {
    let wanted = access::wanted(intent);
    let (name, subject) = (row.name.as_str(), intent.subject.as_deref());
    let scope = || request.scopes().and_then(|scopes| scopes.text(name, subject, wanted));
    let lacks = match &request.principal.bearer_scope {
        BearerScope::Granted(grants) => !grants.iter().any(|grant| grant.covers(name, subject, wanted)),
        BearerScope::Direct | BearerScope::Refused => false,
    };
    let missing_scope = || lacking(request, lacks);
    judge(request, row, wanted).map_err(|refused| refused.missing_scope(scope(), missing_scope()))?;
    if lacks && wanted != AccessAction::Open {
        return Err(HttpError::of(&catalogue::UNAUTHORIZED).missing_scope(scope(), missing_scope()));
    }
    if let Some(grants) = &request.principal.grants {
        package_reach::judge(request, row, intent, grants)?;
    }
    if wanted.writes() && *request.app.live.read_only.get() {
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

/// What a bearer challenge says of the credential that came.
fn lacking(request: &RepositoryRequest<'_>, scope: bool) -> MissingScope {
    let sent = PresentedCredential::read(&request.parts.headers);
    let as_bearer = matches!(sent, PresentedCredential::Bearer(_));
    MissingScope::of(&request.principal.bearer_scope, as_bearer, scope)
}

fn judge(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    wanted: AccessAction,
) -> Result<(), HttpError> {
    let rules = access::rules(Some(request.description()));
    let facts = access::facts(row, true);
    // The challenge is the one of a repository that does not exist, so that it discloses nothing.
    access::authorize(&request.principal.presented, &rules, wanted, Some(facts), request.now)
        .map_err(|refused| refused.missing_scope(None, lacking(request, false)))
}

/// Under a claim that names no repository `read` asks for a credential and no more, `open` not even for that.
fn without_repository(request: &RepositoryRequest<'_>, told: Told) -> Result<Arc<Intent>, HttpError> {
    let wanted = match &told {
        Ok(intent) => access::wanted(intent),
        Err(_) => AccessAction::Read { for_publish: true },
    };
    judge_credential(request, wanted, None)?;
    told
}

/// The refusal where there is no repository of this name. Without a credential it looks like that of one that is there and
/// private, its scope included.
fn missing(request: &RepositoryRequest<'_>, name: &str, told: Told) -> HttpError {
    let wanted = match &told {
        // What is open is open in a repository that is there.
        Ok(intent) if access::wanted(intent) == AccessAction::Open => {
            AccessAction::Read { for_publish: false }
        }
        Ok(intent) => access::wanted(intent),
        Err(_) => access::wanted_by_method(&request.head.method),
    };
    let scope = || {
        let subject = told.as_ref().ok()?.subject.as_deref();
        request.scopes()?.text(name, subject, wanted)
    };
    if let Err(refused) = judge_credential(request, wanted, Some(&scope)) {
        return refused;
    }
    if !packhouse_wire::path::is_repository_name(name) {
        return HttpError::of(&catalogue::NO_REPOSITORY_NAME);
    }
    match told {
        Err(refused) if refused.is_malformed() => refused,
        _ => HttpError::of(&catalogue::NOT_FOUND),
    }
}

/// Judges the credential alone. `scope` makes the scope that a challenge names.
fn judge_credential(
    request: &RepositoryRequest<'_>,
    wanted: AccessAction,
    scope: Option<&dyn Fn() -> Option<String>>,
) -> Result<(), HttpError> {
    let rules = access::rules(Some(request.description()));
    access::authorize_credential(&request.principal.presented, &rules, wanted, request.now).map_err(
        |refused| {
            let missing_scope = lacking(request, false);
            refused.missing_scope(scope.and_then(|scope| scope()), missing_scope)
        },
    )
}
