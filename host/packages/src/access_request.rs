//! The one question of access, put for a request with the facts that were read together.

use std::borrow::Cow;

use packhouse_runtime::{Action, Description, Intent};
use packhouse_store::{Reached, RepositoryRow};

use crate::error_response::HttpError;
use crate::identify::Principal;
use packhouse_identity::access::{
    self, AccessAction, AccessDecision, AccessRequest, Kind, RepositoryFacts, ResolvedCredential, Rules,
};

/// What an intent wants.
pub(crate) fn wanted(intent: &Intent) -> AccessAction {
    match intent.action {
        Action::Open => AccessAction::Open,
        Action::Read => AccessAction::Read { for_publish: intent.for_publish },
        Action::Publish => AccessAction::Publish,
        Action::Delete => AccessAction::Delete,
    }
}

/// What a request wants as far as its method says, where no plugin can be asked.
pub(crate) fn wanted_by_method(method: &str) -> AccessAction {
    match method {
        "GET" | "HEAD" | "OPTIONS" => AccessAction::Read { for_publish: true },
        "DELETE" => AccessAction::Delete,
        _ => AccessAction::Publish,
    }
}

/// What a format declares about refusals. Without a description it is what holds for most formats.
pub(crate) fn rules(description: Option<&Description>) -> Rules<'_> {
    match description {
        Some(description) => Rules::from(description),
        None => Rules {
            checks_username: false,
            token_usernames: Cow::default(),
            refused_read_status: 401,
            refused_write_status: 401,
            not_reached_status: 403,
            token_formats: Cow::default(),
        },
    }
}

/// Whether the caller may do what is wanted in this repository; else the refusal as it is answered.
pub(crate) fn authorize(
    presented: &ResolvedCredential,
    rules: &Rules<'_>,
    wanted: AccessAction,
    repository: Option<RepositoryFacts>,
    now: i64,
) -> Result<(), HttpError> {
    let question = AccessRequest { repository, rules, presented, wanted, now };
    verdict(&question, access::decide(&question))
}

/// The same where there is no repository to speak of: the credential is judged, and nothing else.
pub(crate) fn authorize_credential(
    presented: &ResolvedCredential,
    rules: &Rules<'_>,
    wanted: AccessAction,
    now: i64,
) -> Result<(), HttpError> {
    let question = AccessRequest { repository: None, rules, presented, wanted, now };
    verdict(&question, access::decide_credential(&question))
}

fn verdict(question: &AccessRequest<'_>, verdict: AccessDecision) -> Result<(), HttpError> {
    match verdict {
        AccessDecision::Allowed => Ok(()),
        AccessDecision::Refused(refusal) => {
            // A repository that is not there is nobody's fault, and neither is what it does not take.
            let there = question.repository.is_some();
            let judged = matches!(refusal.status, 401 | 403) || (refusal.status == 404 && there);
            let refused = HttpError::from(refusal);
            let shown = *question.presented != ResolvedCredential::Nothing;
            Err(if judged && shown { refused.of_credential() } else { refused })
        }
    }
}

/// What access needs to know of a repository.
pub(crate) fn facts(row: &RepositoryRow, enabled: bool) -> RepositoryFacts {
    RepositoryFacts { kind: Kind::of(&row.kind), public: row.public, enabled }
}

/// Of these repositories, those of the format that the same caller may read, in their order. None is a group: no group shows
/// another.
pub(crate) fn readable<'a>(
    principal: &Principal,
    description: &Description,
    others: impl IntoIterator<Item = &'a Reached>,
    now: i64,
) -> Vec<&'a RepositoryRow> {
    let rules = rules(Some(description));
    let wanted = AccessAction::Read { for_publish: false };
    let mut presented = principal.presented_elsewhere();
    let may = |other: &&Reached| {
        let facts = facts(&other.row, true);
        other.row.format == description.format
            && facts.kind != Kind::Group
            && authorize(presented.to(other), &rules, wanted, Some(facts), now).is_ok()
    };
    others.into_iter().filter(may).map(|other| &other.row).collect()
}
