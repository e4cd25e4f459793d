//! Two or three servers on one PostgreSQL and one S3 behind a balancer, a load on them, faults in every part, and a history of all
//! that clients saw, which is checked. `just chaos --minutes 60` runs it; a small round is in `just test`.
//!
//! One direction: `round` → `faults` → `load` → `formats` → `cluster` → `balancer`; all write the `history`, which `checker` reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

pub mod balancer;
pub mod checker;
pub mod cluster;
pub mod faults;
pub mod formats;
pub mod history;
pub mod load;
pub mod plant;
pub mod random;
pub mod report;
pub mod round;
pub mod tokens;
pub mod verify;
