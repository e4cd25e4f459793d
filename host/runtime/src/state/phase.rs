//! Which imports of the contract can be called when: none in `describe`, the request and intents in `route`, all afterwards.
//!
//! All three run with one linker, so that `handle` can go on in the instance of `route`. What holds the rule is that every import does
//! one of two things: it takes a handle, and the guest has none but that of its request; or it asks [`HostState::reach`]. The test in
//! `imports/reach.rs` goes through the whole contract and fails on an import that does neither.

use super::HostState;
use crate::error::CallError;

/// How far a guest can reach, in rising order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    /// `describe`: nothing.
    Describe,
    /// `route`: the request without its body, and intents.
    Route,
    /// Every other function: all that the call is given.
    Serve,
}

impl Phase {
    fn function(self) -> &'static str {
        match self {
            Phase::Describe => "describe",
            Phase::Route => "route",
            Phase::Serve => "a function",
        }
    }
}

impl HostState {
    /// Ends the call, saying which import it was, where that cannot be called before the phase `first`. Every import that needs no
    /// handle asks this before it does anything else; `import` is the interface and the name, as `host.now`.
    pub(crate) fn reach(&self, first: Phase, import: &str) -> Result<(), CallError> {
        if self.phase >= first {
            return Ok(());
        }
        let function = self.phase.function();
        Err(CallError::Trap(format!("{function} called {import}, which cannot be called from there")))
    }
}
