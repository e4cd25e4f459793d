//! Retention: its policies, their runs, and what they judge versions by. The rule itself is a text here: what it means, and what becomes
//! of it, is not the store's to know.

mod policies;
mod runs;
mod versions;

pub use policies::{MAX_POLICIES, NewPolicy, PolicyChange, PolicyRow};
pub use runs::{RUNS_KEPT, RetentionClaim, RunRow};
pub use versions::{JudgedPlace, JudgedVersion};
