//! Rules for tokens: servers accept a token from the answer that created it until a client requests
//! its revocation. Servers refuse it after the answer to the revocation.

use super::{Rule, Violation, violation};
use crate::history::{Event, Micros, Operation, Outcome};
use std::collections::BTreeMap;

/// The lifetime of a token.
#[derive(Clone, Copy, Debug, Default)]
struct TokenLifetime {
    made: Option<Micros>,
    /// The time when its revocation was first requested.
    end_requested: Option<Micros>,
    /// The time when its revocation was first acknowledged.
    ended: Option<Micros>,
}

/// Finds uses of tokens that got the wrong answer.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let lives = lives(events);
    let judge = |event: &Event| {
        let Operation::Use { token } = &event.what else { return None };
        let life = lives.get(token).copied().unwrap_or_default();
        match event.outcome {
            Outcome::Refused => {
                let good = life.made.is_some_and(|made| event.begun >= made)
                    && life.end_requested.is_none_or(|end_requested| event.ended < end_requested);
                good.then(|| violation(Rule::WrongRefusal, event, "the token is valid"))
            }
            Outcome::Done | Outcome::NotThere | Outcome::Conflict | Outcome::Damaged => {
                let ended = life.ended.filter(|ended| event.begun >= *ended)?;
                let late = (event.begun - ended) as f64 / 1000.0;
                let why = format!("used {late:.1} ms after its revocation was answered");
                Some(violation(Rule::Revoked, event, why))
            }
            Outcome::Away | Outcome::Broken | Outcome::Odd(_) => None,
        }
    };
    events.iter().filter_map(judge).collect()
}

fn lives(events: &[Event]) -> BTreeMap<&String, TokenLifetime> {
    let mut lives = BTreeMap::<_, TokenLifetime>::new();
    let earlier = |known: Option<Micros>, now| Some(known.map_or(now, |known: Micros| known.min(now)));
    for event in events {
        match &event.what {
            Operation::Create { token } if event.outcome == Outcome::Done => {
                lives.entry(token).or_default().made = Some(event.ended);
            }
            Operation::Revoke { token } => {
                let life = lives.entry(token).or_default();
                life.end_requested = earlier(life.end_requested, event.begun);
                if event.outcome == Outcome::Done {
                    life.ended = earlier(life.ended, event.ended);
                }
            }
            _ => {}
        }
    }
    lives
}
