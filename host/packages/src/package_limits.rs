//! Limits of a credential to some packages, for writes. They come from trusted publishers, from the
//! token itself, and from the permissions of the member who signed in or owns the token. The host
//! checks packages in a request's path before it reads the body. It checks packages in the body
//! when the plugin commits.

use packhouse_identity::access::ResolvedCredential;
use packhouse_identity::permissions::{PackagePatterns, RepositoryAction};
use packhouse_runtime::{Action, Intent, LimitKind, PackageBounds, PackageLimit};
use packhouse_store::RepositoryRow;

use crate::error_response::HttpError;
use crate::identify::Principal;
use crate::repository_request::RepositoryRequest;

/// Refuses a write whose path names only packages that the credential may not write.
pub(crate) fn judge(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
) -> Result<(), HttpError> {
    match bounds_in(request, row, intent) {
        Some(bounds) => bounds.judge_request(intent).map_err(HttpError::from),
        None => Ok(()),
    }
}

/// Returns the packages that the commits of a call may change. Returns `None` if they may change
/// every package.
pub(crate) fn bounds(request: &RepositoryRequest<'_>, intent: &Intent) -> Option<PackageBounds> {
    bounds_in(request, request.found()?, intent)
}

fn bounds_in(request: &RepositoryRequest<'_>, row: &RepositoryRow, intent: &Intent) -> Option<PackageBounds> {
    if !intent.action.writes() {
        return None;
    }
    let limits = limits(request.principal, row, intent.action);
    let folding = request.description().name_folding;
    (!limits.is_empty()).then(|| PackageBounds::new(limits.into(), folding, intent))
}

/// Returns the limits for writes of this action in a repository, in the order in which they are
/// checked.
pub(crate) fn limits(principal: &Principal, row: &RepositoryRow, action: Action) -> Vec<PackageLimit> {
    let mut limits = Vec::new();
    if let Some(grants) = &principal.grants {
        add(&mut limits, LimitKind::Grant, grants.patterns(row.id, true).into());
    }
    let permitted = |action| match principal.permissions() {
        Some(permissions) => permissions.patterns(row.id, &row.name, action),
        None => PackagePatterns::Only(Vec::new()),
    };
    match &principal.presented {
        ResolvedCredential::Token(token, _) => {
            let own = principal.facts.token.as_ref().and_then(|token| token.packages.clone());
            if let Some(own) = own {
                add(&mut limits, LimitKind::Credential, own.into());
            }
            // A token may write only what its owner may both publish and delete.
            if token.owner.is_some() {
                let published = permitted(RepositoryAction::Publish);
                let deleted = permitted(RepositoryAction::Delete);
                let is_same = published == deleted;
                add(&mut limits, LimitKind::Owner, published);
                if !is_same {
                    add(&mut limits, LimitKind::Owner, deleted);
                }
            }
        }
        ResolvedCredential::Member(_) => {
            let action = match action {
                Action::Delete => RepositoryAction::Delete,
                _ => RepositoryAction::Publish,
            };
            add(&mut limits, LimitKind::Credential, permitted(action));
        }
        ResolvedCredential::Nothing
        | ResolvedCredential::Unknown
        | ResolvedCredential::Refused(_)
        | ResolvedCredential::Key(_) => {}
    }
    limits
}

fn add(limits: &mut Vec<PackageLimit>, kind: LimitKind, patterns: PackagePatterns) {
    if let PackagePatterns::Only(patterns) = patterns {
        limits.push(PackageLimit { kind, patterns });
    }
}
