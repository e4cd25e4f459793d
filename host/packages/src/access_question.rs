//! The one question of access, put for a request with the facts that were read together.

use packhouse_runtime::{Action, Description, Intent};
use packhouse_store::{Reached, RepositoryRow};

use crate::error_response::HttpError;
use crate::identify::Known;
use packhouse_identity::access::{self, Kind, Presented, Question, RepositoryFacts, Rules, Verdict, Wanted};

/// What an intent wants.
pub(crate) fn wanted(intent: &Intent) -> Wanted {
    match intent.action {
        Action::Open => Wanted::Open,
        Action::Read => Wanted::Read { for_publish: intent.for_publish },
        Action::Publish => Wanted::Publish,
        Action::Delete => Wanted::Delete,
    }
}

/// What a request wants as far as its method says, where no plugin can be asked.
pub(crate) fn wanted_by_method(method: &str) -> Wanted {
    match method {
        "GET" | "HEAD" | "OPTIONS" => Wanted::Read { for_publish: true },
        "DELETE" => Wanted::Delete,
        _ => Wanted::Publish,
    }
}

/// What a format declares about refusals. Without a description it is what holds for most formats.
pub(crate) fn rules(description: Option<&Description>) -> Rules {
    match description {
        Some(description) => Rules::from(description),
        None => Rules {
            checks_username: false,
            token_usernames: Vec::new(),
            refused_read_status: 401,
            refused_write_status: 401,
            not_reached_status: 403,
            token_formats: Vec::new(),
        },
    }
}

/// Whether the caller may do what is wanted in this repository; else the refusal as it is answered.
pub(crate) fn authorize(
    presented: &Presented,
    rules: &Rules,
    wanted: Wanted,
    repository: Option<RepositoryFacts>,
    now: i64,
) -> Result<(), HttpError> {
    let question = Question { repository, rules, presented, wanted, now };
    verdict(&question, access::decide(&question))
}

/// The same where there is no repository to speak of: the credential is judged, and nothing else.
pub(crate) fn authorize_credential(
    presented: &Presented,
    rules: &Rules,
    wanted: Wanted,
    now: i64,
) -> Result<(), HttpError> {
    let question = Question { repository: None, rules, presented, wanted, now };
    verdict(&question, access::decide_credential(&question))
}

fn verdict(question: &Question<'_>, verdict: Verdict) -> Result<(), HttpError> {
    match verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Refused(refusal) => {
            // A repository that is not there is nobody's fault, and neither is what it does not take.
            let there = question.repository.is_some();
            let judged = matches!(refusal.status, 401 | 403) || (refusal.status == 404 && there);
            let refused = HttpError::from(refusal);
            let shown = *question.presented != Presented::Nothing;
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
    known: &Known,
    description: &Description,
    others: impl IntoIterator<Item = &'a Reached>,
    now: i64,
) -> Vec<&'a RepositoryRow> {
    let rules = rules(Some(description));
    let wanted = Wanted::Read { for_publish: false };
    let may = |other: &&Reached| {
        let (facts, presented) = (facts(&other.row, true), known.presented_to(other));
        other.row.format == description.format
            && facts.kind != Kind::Group
            && authorize(&presented, &rules, wanted, Some(facts), now).is_ok()
    };
    others.into_iter().filter(may).map(|other| &other.row).collect()
}
