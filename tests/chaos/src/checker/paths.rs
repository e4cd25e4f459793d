//! Each path: published once, there with the right bytes from its acknowledgement on, and gone from its deletion on.

use super::losses::{Losses, losses};
use super::{Rule, UNACKNOWLEDGED, Violation, violation};
use crate::history::{Event, Micros, Outcome, What};
use std::collections::BTreeMap;

/// What is known of one path.
#[derive(Debug, Default)]
pub(super) struct Path<'a> {
    publishes: Vec<&'a Event>,
    reads: Vec<&'a Event>,
    deletes: Vec<&'a Event>,
}

/// The paths of a history.
pub(super) fn paths(events: &[Event]) -> BTreeMap<&str, Path<'_>> {
    let mut paths = BTreeMap::<&str, Path<'_>>::new();
    for event in events {
        match &event.what {
            What::Publish { path, .. } => paths.entry(path).or_default().publishes.push(event),
            What::Read { path, .. } => paths.entry(path).or_default().reads.push(event),
            What::Delete { path } => paths.entry(path).or_default().deletes.push(event),
            _ => {}
        }
    }
    paths
}

impl Path<'_> {
    /// From when on it must be there for whoever asks, if nobody has begun to delete it.
    pub(super) fn there_from(&self) -> Option<Micros> {
        let done = |events: &[&Event], more| {
            events
                .iter()
                .filter(|event| event.outcome == Outcome::Done)
                .map(move |event| event.ended + more)
                .min()
        };
        let (acknowledged, seen) = (done(&self.publishes, 0), done(&self.reads, UNACKNOWLEDGED));
        acknowledged.into_iter().chain(seen).min()
    }

    /// From when on it may be there.
    pub(super) fn perhaps_from(&self) -> Option<Micros> {
        // One that was refused as a double has done nothing.
        let tried = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        tried.map(|event| event.begun).min()
    }

    /// From when on it may be gone again.
    pub(super) fn perhaps_gone_from(&self) -> Option<Micros> {
        self.deletes.iter().map(|event| event.begun).min()
    }

    /// From when on it must be gone.
    pub(super) fn gone_from(&self) -> Option<Micros> {
        let done = self.deletes.iter().filter(|event| event.outcome == Outcome::Done);
        done.map(|event| event.ended).min()
    }

    fn check(&self, losses: &Losses<'_>, found: &mut Vec<Violation>) {
        self.check_publishes(found);
        for read in &self.reads {
            self.check_read(read, losses, found);
        }
        // Whoever is told that it is not there to be deleted is told so rightly.
        for delete in self.deletes.iter().filter(|delete| delete.outcome == Outcome::NotThere) {
            let before = self.deletes.iter().any(|other| other.begun < delete.begun);
            if !before && self.there_from().is_some_and(|there| delete.begun >= there) {
                found.push(violation(
                    Rule::Lost,
                    delete,
                    "it was acknowledged, and is not there to be deleted",
                ));
            }
        }
    }

    fn check_publishes(&self, found: &mut Vec<Violation>) {
        let done: Vec<_> = self.publishes.iter().filter(|event| event.outcome == Outcome::Done).collect();
        for (at, second) in done.iter().enumerate().skip(1) {
            let (What::Publish { digest: one, .. }, What::Publish { digest, once, .. }) =
                (&done[at - 1].what, &second.what)
            else {
                continue;
            };
            if *once || one != digest {
                found.push(violation(Rule::Once, second, "it was acknowledged before"));
            }
        }
        for refused in self.publishes.iter().filter(|event| event.outcome == Outcome::Conflict) {
            let other = self.publishes.iter().any(|other| {
                !std::ptr::eq(*other, *refused)
                    && other.outcome != Outcome::Conflict
                    && other.begun <= refused.ended
            });
            if !other {
                found.push(violation(Rule::Answer, refused, "409, and nobody else published it"));
            }
        }
    }

    fn check_read(&self, read: &Event, losses: &Losses<'_>, found: &mut Vec<Violation>) {
        match read.outcome {
            // Whoever is told that its bytes are lost is told that it is there.
            Outcome::Done | Outcome::Damaged => {
                if self.perhaps_from().is_none_or(|begun| begun > read.ended) {
                    found.push(violation(Rule::Undead, read, "nobody had published it"));
                }
                if self.gone_from().is_some_and(|gone| read.begun >= gone) {
                    found.push(violation(Rule::Undead, read, "its deletion was answered before"));
                }
                if read.outcome == Outcome::Done {
                    self.check_bytes(read, found);
                } else if !self.may_be_lost(read, losses) {
                    found.push(violation(Rule::Lost, read, "its object was not removed, or is repaired"));
                }
            }
            Outcome::NotThere => {
                let there = self.there_from().is_some_and(|there| read.begun >= there);
                let kept = self.perhaps_gone_from().is_none_or(|gone| gone > read.ended);
                if there && kept {
                    found.push(violation(Rule::Lost, read, "it was acknowledged, or seen, before"));
                }
            }
            _ => {}
        }
    }

    /// Whether a read may have met the loss of bytes that somebody published here.
    fn may_be_lost(&self, read: &Event, losses: &Losses<'_>) -> bool {
        let sent = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        sent.filter_map(|event| losses.get(digest(event))).flatten().any(|loss| loss.may_meet(read))
    }

    fn check_bytes(&self, read: &Event, found: &mut Vec<Violation>) {
        let What::Read { digest: came, .. } = &read.what else { return };
        let mut sent = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        let acknowledged = self.publishes.iter().find(|event| event.outcome == Outcome::Done);
        let right = match acknowledged {
            Some(event) => digest(event) == *came,
            None => sent.any(|event| digest(event) == *came),
        };
        if !right {
            found.push(violation(Rule::Bytes, read, "those are not the bytes that were published"));
        }
    }
}

/// The bytes that a publish sent.
fn digest(publish: &Event) -> &str {
    match &publish.what {
        What::Publish { digest, .. } => digest,
        _ => "",
    }
}

/// What is wrong with any of them.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let (losses, mut found) = (losses(events), Vec::new());
    paths(events).values().for_each(|path| path.check(&losses, &mut found));
    found
}
