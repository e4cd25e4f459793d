//! Each answer by itself: one that its question cannot have is wrong whatever else happened.

use super::{Rule, Violation, violation};
use crate::history::{Event, Outcome, What};

/// Answers that are never right, and answers that are missing when there must be one.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let judge = |event: &Event| {
        if event.last && event.outcome.unknown() {
            return Some(violation(Rule::Recovery, event, "nothing is amiss any more"));
        }
        match (&event.what, &event.outcome) {
            (_, Outcome::Odd(answer)) => Some(violation(Rule::Answer, event, answer.clone())),
            // The rules of paths say when bytes may be lost.
            (What::Read { .. }, Outcome::Damaged) => None,
            (_, Outcome::Damaged) => {
                Some(violation(Rule::Answer, event, "500 of lost bytes, and no file was read"))
            }
            // The tokens' own rules say when they may be refused.
            (What::Use { .. }, _) => None,
            (_, Outcome::Refused) => Some(violation(Rule::WrongRefusal, event, "a good credential")),
            (What::Publish { .. } | What::Create { .. } | What::Revoke { .. }, Outcome::NotThere) => {
                Some(violation(Rule::Answer, event, "404"))
            }
            (What::Publish { .. }, Outcome::Conflict) => None,
            (_, Outcome::Conflict) => Some(violation(Rule::Answer, event, "409")),
            _ => None,
        }
    };
    events.iter().filter_map(judge).collect()
}
