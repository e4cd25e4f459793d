//! Faults planted in a history that is in order: what a server with each of them would have let its clients see. A checker that
//! does not find one of them is worth nothing.
#![allow(clippy::ptr_arg, reason = "some take events out or add to them, and all stand in one table")]

use crate::checker::Rule;
use crate::history::{Event, Micros, Outcome, Way, What};

/// A fault of a server, as it would show.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// What the server would have done.
    pub name: &'static str,
    /// The rule that must find it.
    pub rule: Rule,
    plant: fn(&mut Vec<Event>) -> Option<()>,
}

impl Plant {
    /// The history with the fault; none when nothing in it can be so changed.
    pub fn planted(&self, events: &[Event]) -> Option<Vec<Event>> {
        let mut events = events.to_vec();
        (self.plant)(&mut events).map(|()| events)
    }
}

/// All of them.
pub const PLANTS: [Plant; 16] = [
    Plant { name: "an acknowledgement before the flush", rule: Rule::Lost, plant: lost_from_then_on },
    Plant { name: "a kept answer that was not dropped", rule: Rule::Lost, plant: stale_on_one_server },
    Plant { name: "an index that was not dropped", rule: Rule::Index, plant: stale_index },
    Plant { name: "a kept credential that was not dropped", rule: Rule::Revoked, plant: still_accepted },
    Plant { name: "a lost file", rule: Rule::Recovery, plant: away_in_the_end },
    Plant { name: "a file that is listed and not there", rule: Rule::Index, plant: listed_and_gone },
    Plant { name: "a repair that did not last", rule: Rule::Lost, plant: lost_again },
    Plant { name: "a loss of bytes that nobody removed", rule: Rule::Lost, plant: lost_by_itself },
    Plant { name: "bytes of another file", rule: Rule::Bytes, plant: other_bytes },
    Plant { name: "two who were first", rule: Rule::Once, plant: published_twice },
    Plant { name: "a deletion that one server did not hear of", rule: Rule::Undead, plant: undead },
    Plant { name: "401 for want of a database", rule: Rule::WrongRefusal, plant: wrong_refusal },
    Plant { name: "a good token refused", rule: Rule::WrongRefusal, plant: wrong_refusal_of_a_token },
    Plant { name: "500", rule: Rule::Answer, plant: odd },
    Plant { name: "409 for what nobody published", rule: Rule::Answer, plant: wrong_conflict },
    Plant { name: "an orphan", rule: Rule::Storage, plant: orphan },
];

fn published(event: &Event) -> Option<&String> {
    match &event.what {
        What::Publish { path, .. } if event.outcome == Outcome::Done => Some(path),
        _ => None,
    }
}

fn read(event: &Event) -> Option<&String> {
    match &event.what {
        What::Read { path, .. } if event.outcome == Outcome::Done => Some(path),
        _ => None,
    }
}

fn removed(event: &Event) -> Option<&String> {
    match &event.what {
        What::Loss { digest } => Some(digest),
        _ => None,
    }
}

/// The bytes that a read found.
fn came(event: &Event) -> Option<&String> {
    match &event.what {
        What::Read { digest, .. } if event.outcome == Outcome::Done => Some(digest),
        _ => None,
    }
}

/// The number of a read that found what was acknowledged before it began, and that nobody had begun to delete when it ended: one
/// beside a deletion may find either.
fn settled_read(events: &[Event], wanted: impl Fn(&Event) -> bool) -> Option<usize> {
    events.iter().position(|event| {
        let Some(path) = read(event).filter(|_| wanted(event)) else { return false };
        let deletes = |other: &Event| {
            matches!(&other.what, What::Delete { path: of } if of == path) && other.begun <= event.ended
        };
        events.iter().any(|other| published(other) == Some(path) && other.ended <= event.begun)
            && !events.iter().any(deletes)
    })
}

/// The number of the last use that ended so and that `wanted` takes by the token's end: when it was first asked for, and when it was
/// first answered.
fn use_of(
    events: &[Event],
    outcome: &Outcome,
    wanted: impl Fn(&Event, Option<Micros>, Option<Micros>) -> bool,
) -> Option<usize> {
    events.iter().rposition(|event| {
        let What::Use { token } = &event.what else { return false };
        let ends = |other: &&Event| matches!(&other.what, What::Revoke { token: of } if of == token);
        let ends = || events.iter().filter(ends);
        let answered = ends().filter(|end| end.outcome == Outcome::Done).map(|end| end.ended).min();
        event.outcome == *outcome && wanted(event, ends().map(|end| end.begun).min(), answered)
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
        What::Index { listed, .. } if event.last && event.outcome == Outcome::Done => {
            Some((at, listed.iter().next_back()?.clone()))
        }
        _ => None,
    })?;
    if let What::Index { listed, .. } = &mut events[at].what {
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
            matches!(&event.what, What::Publish { digest, .. } if digest == lost)
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
    if let What::Read { digest, .. } = &mut events[at].what {
        *digest = "0".repeat(64);
    }
    Some(())
}

fn published_twice(events: &mut Vec<Event>) -> Option<()> {
    let once =
        |event: &&Event| matches!(event.what, What::Publish { once: true, .. }) && published(event).is_some();
    let mut second = events.iter().find(once)?.clone();
    second.begun = second.ended + 1;
    second.ended += 2;
    events.push(second);
    Some(())
}

fn undead(events: &mut Vec<Event>) -> Option<()> {
    let (gone, publish) = events.iter().find_map(|event| match &event.what {
        What::Delete { path } if event.outcome == Outcome::Done => {
            events.iter().find(|event| published(event) == Some(path)).map(|publish| (event.ended, publish))
        }
        _ => None,
    })?;
    let What::Publish { path, digest, .. } = publish.what.clone() else { return None };
    let mut late = publish.clone();
    (late.begun, late.ended, late.way) = (gone + 1, gone + 2, Way::Server(1));
    late.what = What::Read { path, digest };
    events.push(late);
    Some(())
}

fn wrong_refusal(events: &mut Vec<Event>) -> Option<()> {
    let at = settled_read(events, |_| true)?;
    events[at].outcome = Outcome::Refused;
    Some(())
}

fn wrong_refusal_of_a_token(events: &mut Vec<Event>) -> Option<()> {
    let at = use_of(events, &Outcome::Done, |event, asked, _| asked.is_none_or(|asked| event.ended < asked))?;
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
    events.retain(|event| !matches!(&event.what, What::Read { path: of, .. } if *of == path));
    let publishes: Vec<usize> = (0..events.len())
        .filter(|at| matches!(&events[*at].what, What::Publish { path: of, .. } if *of == path))
        .collect();
    publishes.into_iter().for_each(|at| events[at].outcome = Outcome::Conflict);
    Some(())
}

fn orphan(events: &mut Vec<Event>) -> Option<()> {
    events.iter_mut().find_map(|event| match &mut event.what {
        What::Storage { orphans, .. } => {
            *orphans += 1;
            Some(())
        }
        _ => None,
    })
}
