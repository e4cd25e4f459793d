//! Calls aside of those that clients wait for: how another component would answer a request that was answered. Such a call has a place of
//! its own among the engine's instances, so that no client waits for it; it changes nothing, whatever it commits; and it counts and
//! logs nowhere as a call of its format.

use std::sync::{Mutex, PoisonError};

use crate::recording::Finished;

/// Marks a request's head: all calls for it are aside. See the module.
#[derive(Debug, Default)]
pub struct Aside {
    /// Whether it is recorded. What the plugin made before is not remembered then, so that it asks for all.
    pub(crate) is_recorded: bool,
    recorded: Mutex<Option<Finished>>,
}

impl Aside {
    /// With a recording of what happens.
    #[must_use]
    pub fn recorded() -> Aside {
        Aside { is_recorded: true, ..Aside::default() }
    }

    /// The recording, once the calls have ended; none where there was no room for it.
    pub fn take_recording(&self) -> Option<Finished> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn hand_over(&self, finished: Finished) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
    }
}
