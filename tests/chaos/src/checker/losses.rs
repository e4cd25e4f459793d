//! Losses: from when until when reads may say that bytes are lost.

use crate::history::{Event, Micros, Outcome, What};
use std::collections::BTreeMap;

/// The losses of a history, by the SHA-256 of the bytes.
pub(super) type Losses<'a> = BTreeMap<&'a str, Vec<Loss>>;

/// The loss of an object, and its repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    begun: Micros,
    repaired: Option<Micros>,
}

impl Loss {
    /// Whether an operation may have met it.
    pub(super) fn may_meet(&self, event: &Event) -> bool {
        self.begun <= event.ended && self.repaired.is_none_or(|repaired| event.begun < repaired)
    }
}

/// The losses of a history.
pub(super) fn losses(events: &[Event]) -> Losses<'_> {
    let mut losses = Losses::new();
    for event in events {
        let What::Loss { digest } = &event.what else { continue };
        let repaired = repaired(events, digest, event.ended);
        losses.entry(digest).or_default().push(Loss { begun: event.begun, repaired });
    }
    losses
}

/// When the bytes were first acknowledged again. A publish that had begun before the loss may have found the object still there, and
/// repairs nothing.
fn repaired(events: &[Event], lost: &str, since: Micros) -> Option<Micros> {
    let repairs = events.iter().filter(|event| {
        event.outcome == Outcome::Done
            && event.begun >= since
            && matches!(&event.what, What::Publish { digest, .. } if digest == lost)
    });
    repairs.map(|event| event.ended).min()
}
