//! The storage after all operations have ended: every row has an object, every object has a row,
//! and every row is referenced.

use super::{Rule, Violation, violation};
use crate::history::{Event, Operation};

/// Finds superfluous and missing objects and rows.
pub(super) fn check(events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        let Operation::Storage { missing, orphans, unnamed, unfinished } = event.what else { continue };
        for (count, what) in [
            (missing, "blobs whose object is missing"),
            (orphans, "objects without a row"),
            (unnamed, "unreferenced blobs"),
            (unfinished, "unfinished uploads"),
        ] {
            if count > 0 {
                found.push(violation(Rule::Storage, event, format!("{count} {what}")));
            }
        }
    }
    found
}
