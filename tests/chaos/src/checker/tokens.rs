//! Credentials: good from the answer that made them until they are revoked, refused from the answer that revoked them.

use super::{Rule, Violation, violation};
use crate::history::{Event, Micros, Outcome, What};
use std::collections::BTreeMap;

/// What is known of a token's time.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    made: Option<Micros>,
    /// When somebody first asked for its end.
    asked: Option<Micros>,
    /// When its end was first answered.
    ended: Option<Micros>,
}

/// Uses that were answered as they may not be.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let lives = lives(events);
    let judge = |event: &Event| {
        let What::Use { token } = &event.what else { return None };
        let life = lives.get(token).copied().unwrap_or_default();
        match event.outcome {
            Outcome::Refused => {
                let good = life.made.is_some_and(|made| event.begun >= made)
                    && life.asked.is_none_or(|asked| event.ended < asked);
                good.then(|| violation(Rule::WrongRefusal, event, "the token is good"))
            }
            Outcome::Done | Outcome::NotThere | Outcome::Conflict | Outcome::Damaged => {
                let ended = life.ended.filter(|ended| event.begun >= *ended)?;
                let late = (event.begun - ended) as f64 / 1000.0;
                let why = format!("asked {late:.1} ms after its revocation was answered");
                Some(violation(Rule::Revoked, event, why))
            }
            Outcome::Away | Outcome::Broken | Outcome::Odd(_) => None,
        }
    };
    events.iter().filter_map(judge).collect()
}

fn lives(events: &[Event]) -> BTreeMap<&String, Life> {
    let mut lives = BTreeMap::<_, Life>::new();
    let earlier = |known: Option<Micros>, now| Some(known.map_or(now, |known: Micros| known.min(now)));
    for event in events {
        match &event.what {
            What::Create { token } if event.outcome == Outcome::Done => {
                lives.entry(token).or_default().made = Some(event.ended);
            }
            What::Revoke { token } => {
                let life = lives.entry(token).or_default();
                life.asked = earlier(life.asked, event.begun);
                if event.outcome == Outcome::Done {
                    life.ended = earlier(life.ended, event.ended);
                }
            }
            _ => {}
        }
    }
    lives
}
