//! The storage when nothing is under way: a row for each object and an object for each row, and each row is needed.

use super::{Rule, Violation, violation};
use crate::history::{Event, What};

/// What is there too much, and what too little.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        let What::Storage { missing, orphans, unnamed, unfinished } = event.what else { continue };
        for (count, what) in [
            (missing, "blobs whose object is missing"),
            (orphans, "objects that no row names"),
            (unnamed, "blobs that nothing names"),
            (unfinished, "uploads that are not finished"),
        ] {
            if count > 0 {
                found.push(violation(Rule::Storage, event, format!("{count} {what}")));
            }
        }
    }
    found
}
