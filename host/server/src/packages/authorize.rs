//! Authorize: puts the one question of access for a request, with the facts that were read together.

use packhouse_runtime::{Action, Description, Intent};

use crate::access::{self, Kind, Presented, Question, RepositoryFacts, Rules, Verdict, Wanted};
use crate::packages::identify::Known;
use crate::packages::shape::Refused;

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

/// What a format declares about refusals; without a description, what holds for most.
pub(crate) fn rules(description: Option<&Description>) -> Rules {
    match description {
        Some(description) => Rules {
            checks_username: description.checks_username,
            refused_read_status: description.refused_read_status,
            refused_write_status: description.refused_write_status,
            not_reached_status: description.not_reached_status,
            token_formats: match description.token_formats.is_empty() {
                true => vec![description.format.clone()],
                false => description.token_formats.clone(),
            },
        },
        None => Rules {
            checks_username: false,
            refused_read_status: 401,
            refused_write_status: 401,
            not_reached_status: 403,
            token_formats: Vec::new(),
        },
    }
}

/// Whether the caller may do what is wanted; else the refusal as it is answered.
pub(crate) fn authorize(
    known: &Known,
    rules: &Rules,
    wanted: Wanted,
    enabled: bool,
    now: i64,
) -> Result<(), Refused> {
    let repository = known.facts.repository.as_ref().map(|row| RepositoryFacts {
        kind: Kind::of(&row.kind),
        public: row.public,
        enabled,
    });
    match access::decide(&Question { repository, rules, presented: &known.presented, wanted, now }) {
        Verdict::Allowed => Ok(()),
        Verdict::Refused(refusal) => {
            // A repository that is not there is nobody's fault, and neither is what it does not take.
            let judged =
                matches!(refusal.status, 401 | 403) || (refusal.status == 404 && repository.is_some());
            let refused = Refused::from(refusal);
            let shown = known.presented != Presented::Nothing;
            Err(if judged && shown { refused.of_credential() } else { refused })
        }
    }
}
