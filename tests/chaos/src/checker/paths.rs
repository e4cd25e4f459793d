//! Rules for paths: only one publish of a path succeeds. After its acknowledgement the path is
//! readable with the right bytes, and after its deletion it is gone.

use super::losses::{Losses, losses};
use super::{Rule, UNACKNOWLEDGED, Violation, violation};
use crate::history::{Event, Micros, Operation, Outcome};
use std::collections::BTreeMap;

/// The events of one path.
#[derive(Debug, Default)]
pub(super) struct Path<'a> {
    publishes: Vec<&'a Event>,
    reads: Vec<&'a Event>,
    deletes: Vec<&'a Event>,
}

/// Groups a history by path.
pub(super) fn paths(events: &[Event]) -> BTreeMap<&str, Path<'_>> {
    let mut paths = BTreeMap::<&str, Path<'_>>::new();
    for event in events {
        match &event.what {
            Operation::Publish { path, .. } => paths.entry(path).or_default().publishes.push(event),
            Operation::Read { path, .. } => paths.entry(path).or_default().reads.push(event),
            Operation::Delete { path } => paths.entry(path).or_default().deletes.push(event),
            _ => {}
        }
    }
    paths
}

impl Path<'_> {
    /// The time from which every read must find the version, if no deletion of it has begun.
    pub(super) fn there_from(&self) -> Option<Micros> {
        let done = |events: &[&Event], more| {
            events
                .iter()
                .filter(|event| event.outcome == Outcome::Done)
                .map(move |event| event.ended + more)
                .min()
        };
        let (acknowledged, read_before) = (done(&self.publishes, 0), done(&self.reads, UNACKNOWLEDGED));
        acknowledged.into_iter().chain(read_before).min()
    }

    /// The time from which a read may find the version.
    pub(super) fn perhaps_from(&self) -> Option<Micros> {
        // A publish that was refused as a duplicate had no effect.
        let tried = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        tried.map(|event| event.begun).min()
    }

    /// The time from which a read may miss the version again.
    pub(super) fn perhaps_gone_from(&self) -> Option<Micros> {
        self.deletes.iter().map(|event| event.begun).min()
    }

    /// The time from which no read may find the version.
    pub(super) fn gone_from(&self) -> Option<Micros> {
        let done = self.deletes.iter().filter(|event| event.outcome == Outcome::Done);
        done.map(|event| event.ended).min()
    }

    fn check(&self, losses: &Losses<'_>, found: &mut Vec<Violation>) {
        self.check_publishes(found);
        for read in &self.reads {
            self.check_read(read, losses, found);
        }
        // A deletion may get 404 only while the version may be absent.
        for delete in self.deletes.iter().filter(|delete| delete.outcome == Outcome::NotThere) {
            let before = self.deletes.iter().any(|other| other.begun < delete.begun);
            if !before && self.there_from().is_some_and(|there| delete.begun >= there) {
                found.push(violation(
                    Rule::Lost,
                    delete,
                    "it was acknowledged, but the deletion did not find it",
                ));
            }
        }
    }

    fn check_publishes(&self, found: &mut Vec<Violation>) {
        let done: Vec<_> = self.publishes.iter().filter(|event| event.outcome == Outcome::Done).collect();
        for (at, second) in done.iter().enumerate().skip(1) {
            let (Operation::Publish { digest: one, .. }, Operation::Publish { digest, once, .. }) =
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
                found.push(violation(Rule::Answer, refused, "409, but nobody else published it"));
            }
        }
    }

    fn check_read(&self, read: &Event, losses: &Losses<'_>, found: &mut Vec<Violation>) {
        match read.outcome {
            // An answer that reports lost bytes also states that the version exists.
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
                    found.push(violation(Rule::Lost, read, "its object was not removed, or was repaired"));
                }
            }
            Outcome::NotThere => {
                let there = self.there_from().is_some_and(|there| read.begun >= there);
                let not_gone = self.perhaps_gone_from().is_none_or(|gone| gone > read.ended);
                if there && not_gone {
                    found.push(violation(Rule::Lost, read, "it was acknowledged or read before"));
                }
            }
            _ => {}
        }
    }

    /// Returns true if a read may have met the loss of bytes that were published at this path.
    fn may_be_lost(&self, read: &Event, losses: &Losses<'_>) -> bool {
        let sent = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        sent.filter_map(|event| losses.get(digest(event))).flatten().any(|loss| loss.may_meet(read))
    }

    fn check_bytes(&self, read: &Event, found: &mut Vec<Violation>) {
        let Operation::Read { digest: came, .. } = &read.what else { return };
        let mut sent = self.publishes.iter().filter(|event| event.outcome != Outcome::Conflict);
        let acknowledged = self.publishes.iter().find(|event| event.outcome == Outcome::Done);
        let right = match acknowledged {
            Some(event) => digest(event) == *came,
            None => sent.any(|event| digest(event) == *came),
        };
        if !right {
            found.push(violation(Rule::Bytes, read, "the bytes are not the published ones"));
        }
    }
}

/// Digest of the bytes that a publish sent.
fn digest(publish: &Event) -> &str {
    match &publish.what {
        Operation::Publish { digest, .. } => digest,
        _ => "",
    }
}

/// Returns the violations of all paths.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let (losses, mut found) = (losses(events), Vec::new());
    paths(events).values().for_each(|path| path.check(&losses, &mut found));
    found
}
