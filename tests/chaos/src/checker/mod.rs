//! The rules that a history must obey. The functions are pure: the same events give the same
//! result, so that faults can be planted in a history to test the rules.
//!
//! An operation takes effect at some moment between its request and its answer. Without an answer,
//! it takes effect at any moment after its request, or never. The checker reports a violation only
//! if no choice of these moments explains the history.

mod answers;
mod indexes;
mod losses;
mod paths;
mod storage;
mod tokens;

use crate::history::{Event, Micros};
use std::fmt;

/// How long an unacknowledged publish may be invisible on other servers after one client has read
/// it, in µs. A server that caches answers under a lease may keep a 404 that long.
pub const UNACKNOWLEDGED: Micros = 3_000_000;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// Acknowledged or read versions must be readable on every server. After an object was removed,
    /// a read may report the loss until a publish of the same bytes is acknowledged.
    Lost,
    /// Deleted versions must be gone, and versions that were never published must not exist.
    Undead,
    /// The bytes must be those that were published.
    Bytes,
    /// A path can be published only once.
    Once,
    /// A revoked credential must be refused.
    Revoked,
    /// A valid credential must not be refused.
    WrongRefusal,
    /// An index must list exactly the existing versions.
    Index,
    /// Every stored object must be referenced, and every referenced object must be stored.
    Storage,
    /// Errors must be 503 with `Retry-After`, or a broken connection.
    Answer,
    /// After the last fault has ended, every request must be answered.
    Recovery,
}

/// A violation of a rule by one event.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The event that broke it.
    pub event: Event,
    /// A description of the violation.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}: {}", self.rule, self.why, self.event)
    }
}

/// Returns all violations in a history.
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
