//! Faults planted in a correct history: each changes the history into one that clients of a server
//! with this fault would observe. The checker must find every one of them.
#![allow(clippy::ptr_arg, reason = "some take events out or add to them, and all stand in one table")]

use crate::checker::Rule;
use crate::history::{Event, Micros, Operation, Outcome, Way};

/// A server's fault, as clients would observe it.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// The fault in words.
    pub name: &'static str,
    /// The rule that must find it.
    pub rule: Rule,
    plant: fn(&mut Vec<Event>) -> Option<()>,
}

impl Plant {
    /// Returns the history with the fault; `None` if the history has no suitable event.
    pub fn planted(&self, events: &[Event]) -> Option<Vec<Event>> {
        let mut events = events.to_vec();
        (self.plant)(&mut events).map(|()| events)
    }
}

/// All plants.
pub const PLANTS: [Plant; 16] = [
    Plant { name: "an acknowledgement before the flush", rule: Rule::Lost, plant: lost_from_then_on },
    Plant { name: "a cached answer that was not invalidated", rule: Rule::Lost, plant: stale_on_one_server },
    Plant { name: "an index that was not invalidated", rule: Rule::Index, plant: stale_index },
    Plant {
        name: "a cached credential that was not invalidated",
        rule: Rule::Revoked,
        plant: still_accepted,
    },
    Plant { name: "a lost file", rule: Rule::Recovery, plant: away_in_the_end },
    Plant { name: "a listed file that does not exist", rule: Rule::Index, plant: listed_and_gone },
    Plant { name: "a repair that did not last", rule: Rule::Lost, plant: lost_again },
    Plant { name: "a loss of bytes that nobody removed", rule: Rule::Lost, plant: lost_by_itself },
    Plant { name: "bytes of another file", rule: Rule::Bytes, plant: other_bytes },
    Plant { name: "two successful publishes of one path", rule: Rule::Once, plant: published_twice },
    Plant { name: "a deletion that one server did not notice", rule: Rule::Undead, plant: undead },
    Plant { name: "401 because the database is down", rule: Rule::WrongRefusal, plant: wrong_refusal },
    Plant { name: "a good token refused", rule: Rule::WrongRefusal, plant: wrong_refusal_of_a_token },
    Plant { name: "500", rule: Rule::Answer, plant: odd },
    Plant { name: "409 for a version that nobody published", rule: Rule::Answer, plant: wrong_conflict },
    Plant { name: "an orphan", rule: Rule::Storage, plant: orphan },
];

fn published(event: &Event) -> Option<&String> {
    match &event.what {
        Operation::Publish { path, .. } if event.outcome == Outcome::Done => Some(path),
        _ => None,
    }
}

fn read(event: &Event) -> Option<&String> {
    match &event.what {
        Operation::Read { path, .. } if event.outcome == Outcome::Done => Some(path),
        _ => None,
    }
}

fn removed(event: &Event) -> Option<&String> {
    match &event.what {
        Operation::Loss { digest } => Some(digest),
        _ => None,
    }
}

/// The digest that a read found.
fn came(event: &Event) -> Option<&String> {
    match &event.what {
        Operation::Read { digest, .. } if event.outcome == Outcome::Done => Some(digest),
        _ => None,
    }
}

/// The index of a read that began after its version was acknowledged and ended before any deletion
/// began. Only such a read has one right outcome.
fn settled_read(events: &[Event], accepts: impl Fn(&Event) -> bool) -> Option<usize> {
    events.iter().position(|event| {
        let Some(path) = read(event).filter(|_| accepts(event)) else { return false };
        let deletes = |other: &Event| {
            matches!(&other.what, Operation::Delete { path: of } if of == path) && other.begun <= event.ended
        };
        events.iter().any(|other| published(other) == Some(path) && other.ended <= event.begun)
            && !events.iter().any(deletes)
    })
}

/// The index of the last use of a token with this outcome for which `accepts` is true. The argument
/// of `accepts` has the times when the token's revocation was first requested and first
/// acknowledged.
fn use_of(
    events: &[Event],
    outcome: &Outcome,
    accepts: impl Fn(&Event, Option<Micros>, Option<Micros>) -> bool,
) -> Option<usize> {
    events.iter().rposition(|event| {
        let Operation::Use { token } = &event.what else { return false };
        let ends = |other: &&Event| matches!(&other.what, Operation::Revoke { token: of } if of == token);
        let ends = || events.iter().filter(ends);
        let answered = ends().filter(|end| end.outcome == Outcome::Done).map(|end| end.ended).min();
        event.outcome == *outcome && accepts(event, ends().map(|end| end.begun).min(), answered)
    })
}

fn lost_from_then_on(events: &mut Vec<Event>) -> Option<()> {
    let first = settled_read(events, |_| true)?;
    let path = read(&events[first])?.clone();
    for event in events.iter_mut().skip(first).filter(|event| read(event) == Some(&path)) {
        event.outcome = Outcome::NotThere;
    }
    Some(())
}

fn stale_on_one_server(events: &mut Vec<Event>) -> Option<()> {
    let at = settled_read(events, |event| matches!(event.way, Way::Server(_)))?;
    events[at].outcome = Outcome::NotThere;
    Some(())
}

fn stale_index(events: &mut Vec<Event>) -> Option<()> {
    let (at, version) = events.iter().enumerate().rev().find_map(|(at, event)| match &event.what {
        Operation::Index { listed, .. } if event.last && event.outcome == Outcome::Done => {
            Some((at, listed.iter().next_back()?.clone()))
        }
        _ => None,
    })?;
    if let Operation::Index { listed, .. } = &mut events[at].what {
        listed.remove(&version);
    }
    Some(())
}

fn still_accepted(events: &mut Vec<Event>) -> Option<()> {
    let at = use_of(events, &Outcome::Refused, |event, _, answered| {
        answered.is_some_and(|answered| answered <= event.begun)
    })?;
    events[at].outcome = Outcome::Done;
    Some(())
}

fn away_in_the_end(events: &mut Vec<Event>) -> Option<()> {
    let last = |event: &&mut Event| event.last && read(event).is_some();
    events.iter_mut().rev().find(last)?.outcome = Outcome::Away;
    Some(())
}

fn listed_and_gone(events: &mut Vec<Event>) -> Option<()> {
    let last = |event: &&mut Event| event.last && read(event).is_some();
    events.iter_mut().rev().find(last)?.outcome = Outcome::NotThere;
    Some(())
}

fn lost_again(events: &mut Vec<Event>) -> Option<()> {
    let at = events.iter().find_map(|loss| {
        let lost = removed(loss)?;
        let repairs = |event: &&Event| {
            matches!(&event.what, Operation::Publish { digest, .. } if digest == lost)
                && event.outcome == Outcome::Done
                && event.begun >= loss.ended
        };
        let repaired = events.iter().filter(repairs).map(|event| event.ended).min()?;
        events.iter().position(|event| event.begun >= repaired && came(event) == Some(lost))
    })?;
    events[at].outcome = Outcome::Damaged;
    Some(())
}

fn lost_by_itself(events: &mut Vec<Event>) -> Option<()> {
    let lost: Vec<&String> = events.iter().filter_map(removed).collect();
    let at = settled_read(events, |event| came(event).is_some_and(|digest| !lost.contains(&digest)))?;
    events[at].outcome = Outcome::Damaged;
    Some(())
}

fn other_bytes(events: &mut Vec<Event>) -> Option<()> {
    let at = settled_read(events, |_| true)?;
    if let Operation::Read { digest, .. } = &mut events[at].what {
        *digest = "0".repeat(64);
    }
    Some(())
}

fn published_twice(events: &mut Vec<Event>) -> Option<()> {
    let once = |event: &&Event| {
        matches!(event.what, Operation::Publish { once: true, .. }) && published(event).is_some()
    };
    let mut second = events.iter().find(once)?.clone();
    second.begun = second.ended + 1;
    second.ended += 2;
    events.push(second);
    Some(())
}

fn undead(events: &mut Vec<Event>) -> Option<()> {
    let (gone, publish) = events.iter().find_map(|event| match &event.what {
        Operation::Delete { path } if event.outcome == Outcome::Done => {
            events.iter().find(|event| published(event) == Some(path)).map(|publish| (event.ended, publish))
        }
        _ => None,
    })?;
    let Operation::Publish { path, digest, .. } = publish.what.clone() else { return None };
    let mut late = publish.clone();
    (late.begun, late.ended, late.way) = (gone + 1, gone + 2, Way::Server(1));
    late.what = Operation::Read { path, digest };
    events.push(late);
    Some(())
}

fn wrong_refusal(events: &mut Vec<Event>) -> Option<()> {
    let at = settled_read(events, |_| true)?;
    events[at].outcome = Outcome::Refused;
    Some(())
}

fn wrong_refusal_of_a_token(events: &mut Vec<Event>) -> Option<()> {
    let at = use_of(events, &Outcome::Done, |event, requested, _| {
        requested.is_none_or(|requested| event.ended < requested)
    })?;
    events[at].outcome = Outcome::Refused;
    Some(())
}

fn odd(events: &mut Vec<Event>) -> Option<()> {
    events.first_mut()?.outcome = Outcome::Odd("500".to_owned());
    Some(())
}

fn wrong_conflict(events: &mut Vec<Event>) -> Option<()> {
    let at = events.iter().position(|event| published(event).is_some())?;
    let path = published(&events[at])?.clone();
    events.retain(|event| !matches!(&event.what, Operation::Read { path: of, .. } if *of == path));
    let publishes: Vec<usize> = (0..events.len())
        .filter(|at| matches!(&events[*at].what, Operation::Publish { path: of, .. } if *of == path))
        .collect();
    publishes.into_iter().for_each(|at| events[at].outcome = Outcome::Conflict);
    Some(())
}

fn orphan(events: &mut Vec<Event>) -> Option<()> {
    events.iter_mut().find_map(|event| match &mut event.what {
        Operation::Storage { orphans, .. } => {
            *orphans += 1;
            Some(())
        }
        _ => None,
    })
}
