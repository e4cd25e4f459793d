//! What a history must hold to. Pure: the same events give the same answer, so that planted faults can be tried on it.
//!
//! An operation takes effect at some moment between its request and its answer; one without an answer at any moment after its
//! request, or never. What is found holds whatever those moments were.

mod answers;
mod indexes;
mod losses;
mod paths;
mod storage;
mod tokens;

use crate::history::{Event, Micros};
use std::fmt;

/// How long after somebody has seen a publish that nobody acknowledged it may be unseen elsewhere: a server that keeps answers under
/// a lease may keep them for one.
pub const UNACKNOWLEDGED: Micros = 3_000_000;

/// What was broken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// What was acknowledged, or seen, is there, everywhere. Where its object was removed, a read may say so until a publish of the
    /// same bytes is acknowledged.
    Lost,
    /// What was deleted is gone, and what was never published is not there.
    Undead,
    /// The bytes are those that were published.
    Bytes,
    /// A path is published once.
    Once,
    /// A revoked credential is refused.
    Revoked,
    /// A good credential is not.
    WrongRefusal,
    /// An index lists what is there, and nothing else.
    Index,
    /// Nothing is left that nothing names, and nothing is missing that something names.
    Storage,
    /// Errors are 503 with `Retry-After`, or a connection that breaks.
    Answer,
    /// Once everything is well again, everything is answered.
    Recovery,
}

/// Where.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What was broken.
    pub rule: Rule,
    /// By which event.
    pub event: Event,
    /// In which way.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.why, self.event)
    }
}

/// All that is wrong with it.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let mut found = answers::check(events);
    found.extend(paths::check(events));
    found.extend(indexes::check(events));
    found.extend(tokens::check(events));
    found.extend(storage::check(events));
    found
}

fn violation(rule: Rule, event: &Event, why: impl Into<String>) -> Violation {
    Violation { rule, event: event.clone(), why: why.into() }
}
