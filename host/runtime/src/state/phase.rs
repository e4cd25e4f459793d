//! Imports that each phase may call: none in `describe`, the request and intents in `route`, and
//! all afterwards.
//!
//! All three phases use one linker, so that `handle` can continue in the instance of `route`. Every
//! import enforces the rule in one of two ways. Either it takes a handle, and the guest has a
//! handle only of its request; or it calls [`HostState::reach`]. The test in
//! `imports/phase_access_tests.rs` goes through the whole contract and fails on an import that does
//! neither.

use super::HostState;
use crate::error::CallError;

/// Access of a guest, in rising order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    /// Phase of `describe`, which may call nothing.
    Describe,
    /// `route` may use the request without its body, and intents.
    Route,
    /// Every other function may use everything that the call has.
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
    /// Ends the call with the name of the import if it cannot be called before the phase `first`.
    /// Every import that takes no handle calls this first. `import` is the interface and the name,
    /// such as `host.now`.
    pub(crate) fn reach(&self, first: Phase, import: &str) -> Result<(), CallError> {
        if self.phase >= first {
            return Ok(());
        }
        let function = self.phase.function();
        Err(CallError::Trap(format!("{function} called {import}, which cannot be called from there")))
    }
}
