//! Rules for single answers. An answer that breaks such a rule is wrong, whatever the rest of the
//! history contains.

use super::{Rule, Violation, violation};
use crate::history::{Event, Operation, Outcome};

/// Finds answers that are never right, and answers that are missing where one is required.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let judge = |event: &Event| {
        if event.last && event.outcome.unknown() {
            return Some(violation(Rule::Recovery, event, "every fault has ended by now"));
        }
        match (&event.what, &event.outcome) {
            (_, Outcome::Odd(answer)) => Some(violation(Rule::Answer, event, answer.clone())),
            // The rules in `paths` decide when bytes may be lost.
            (Operation::Read { .. }, Outcome::Damaged) => None,
            (_, Outcome::Damaged) => {
                Some(violation(Rule::Answer, event, "500 for lost bytes, but no file was read"))
            }
            // The rules in `tokens` decide when a server may refuse a token.
            (Operation::Use { .. }, _) => None,
            (_, Outcome::Refused) => Some(violation(Rule::WrongRefusal, event, "a good credential")),
            (
                Operation::Publish { .. } | Operation::Create { .. } | Operation::Revoke { .. },
                Outcome::NotThere,
            ) => Some(violation(Rule::Answer, event, "404")),
            (Operation::Publish { .. }, Outcome::Conflict) => None,
            (_, Outcome::Conflict) => Some(violation(Rule::Answer, event, "409")),
            _ => None,
        }
    };
    events.iter().filter_map(judge).collect()
}
