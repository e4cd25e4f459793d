//! Access decisions for a request, based on facts that the server read together.

use std::borrow::Cow;

use packhouse_runtime::{Action, Description, Intent};
use packhouse_store::{Reached, RepositoryRow};

use crate::error_response::HttpError;
use crate::identify::Principal;
use packhouse_identity::access::{
    self, AccessAction, AccessDecision, AccessRequest, FormatRules, RepositoryFacts, RepositoryKind,
    ResolvedCredential,
};

/// Returns the access that an intent requires.
pub(crate) fn required_action(intent: &Intent) -> AccessAction {
    match intent.action {
        Action::Open => AccessAction::Open,
        Action::Read => AccessAction::Read { for_publish: intent.for_publish },
        Action::Publish => AccessAction::Publish,
        Action::Delete => AccessAction::Delete,
    }
}

/// Returns the access that the method of a request requires. The host uses this where no plugin can
/// judge the request.
pub(crate) fn action_by_method(method: &str) -> AccessAction {
    match method {
        "GET" | "HEAD" | "OPTIONS" => AccessAction::Read { for_publish: true },
        "DELETE" => AccessAction::Delete,
        _ => AccessAction::Publish,
    }
}

/// Returns a format's rules for refusals. Without a description, returns the rules that most
/// formats have.
pub(crate) fn rules(description: Option<&Description>) -> FormatRules<'_> {
    match description {
        Some(description) => FormatRules::from(description),
        None => FormatRules {
            checks_username: false,
            token_usernames: Cow::default(),
            refused_read_status: 401,
            refused_write_status: 401,
            not_reached_status: 403,
            token_formats: Cow::default(),
        },
    }
}

/// Checks that the caller has this access to the repository. The error is the response to the
/// client.
pub(crate) fn authorize(
    presented: &ResolvedCredential,
    rules: &FormatRules<'_>,
    required: AccessAction,
    repository: Option<RepositoryFacts>,
    now: i64,
) -> Result<(), HttpError> {
    let request = AccessRequest { repository, rules, presented, action: required, now };
    verdict(&request, access::decide(&request))
}

/// Checks only the credential, for requests without a repository.
pub(crate) fn authorize_credential(
    presented: &ResolvedCredential,
    rules: &FormatRules<'_>,
    required: AccessAction,
    now: i64,
) -> Result<(), HttpError> {
    let request = AccessRequest { repository: None, rules, presented, action: required, now };
    verdict(&request, access::decide_credential(&request))
}

fn verdict(request: &AccessRequest<'_>, verdict: AccessDecision) -> Result<(), HttpError> {
    match verdict {
        AccessDecision::Allowed => Ok(()),
        AccessDecision::Refused(refusal) => {
            // Two refusals say nothing about the credential: that of a missing repository, and that
            // of a write that the repository's kind does not accept.
            let there = request.repository.is_some();
            let judged = matches!(refusal.status, 401 | 403) || (refusal.status == 404 && there);
            let refused = HttpError::from(refusal);
            let was_presented = *request.presented != ResolvedCredential::Nothing;
            Err(if judged && was_presented { refused.of_credential() } else { refused })
        }
    }
}

/// Returns the facts about a repository on which access decisions depend.
pub(crate) fn facts(row: &RepositoryRow, enabled: bool) -> RepositoryFacts {
    RepositoryFacts { kind: RepositoryKind::of(&row.kind), public: row.public, enabled }
}

/// Returns the repositories of this format that the caller may read, in the given order. Leaves out
/// groups: a group never contains another group.
pub(crate) fn readable<'a>(
    principal: &Principal,
    description: &Description,
    others: impl IntoIterator<Item = &'a Reached>,
    now: i64,
) -> Vec<&'a RepositoryRow> {
    let rules = rules(Some(description));
    let required = AccessAction::Read { for_publish: false };
    let mut presented = principal.presented_elsewhere();
    let may = |other: &&Reached| {
        let facts = facts(&other.row, true);
        other.row.format == description.format
            && facts.kind != RepositoryKind::Group
            && authorize(presented.to(other), &rules, required, Some(facts), now).is_ok()
    };
    others.into_iter().filter(may).map(|other| &other.row).collect()
}
