//! Losses: the time span in which reads may report that bytes are lost.

use crate::history::{Event, Micros, Operation, Outcome};
use std::collections::BTreeMap;

/// The losses in a history, by the SHA-256 of the bytes.
pub(super) type Losses<'a> = BTreeMap<&'a str, Vec<Loss>>;

/// The loss of an object, and its repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    begun: Micros,
    repaired: Option<Micros>,
}

impl Loss {
    /// Returns true if an operation may have met this loss.
    pub(super) fn may_meet(&self, event: &Event) -> bool {
        self.begun <= event.ended && self.repaired.is_none_or(|repaired| event.begun < repaired)
    }
}

/// Collects the losses in a history.
pub(super) fn losses(events: &[Event]) -> Losses<'_> {
    let mut losses = Losses::new();
    for event in events {
        let Operation::Loss { digest } = &event.what else { continue };
        let repaired = repaired(events, digest, event.ended);
        losses.entry(digest).or_default().push(Loss { begun: event.begun, repaired });
    }
    losses
}

/// The time when a server first acknowledged a publish of the same bytes after the loss. A publish
/// that began before the loss is not a repair: it may have found the object still in place.
fn repaired(events: &[Event], lost: &str, since: Micros) -> Option<Micros> {
    let repairs = events.iter().filter(|event| {
        event.outcome == Outcome::Done
            && event.begun >= since
            && matches!(&event.what, Operation::Publish { digest, .. } if digest == lost)
    });
    repairs.map(|event| event.ended).min()
}
