//! Retention policies, their runs, and the version facts that they need. The rule is stored as
//! text; the caller interprets and applies it.

mod policies;
mod runs;
mod versions;

pub use policies::{MAX_POLICIES, NewPolicy, PolicyChange, PolicyRow};
pub use runs::{MAX_RUNS, RetentionClaim, RunRow};
pub use versions::{JudgedPlace, JudgedVersion};
