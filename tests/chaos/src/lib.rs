//! Two or three servers behind a balancer share one PostgreSQL and one S3. They run under load
//! while faults happen in every part of the cluster. The checker then verifies the history, which
//! records every answer to the clients. `just chaos --minutes 60` runs it; `just test` includes a
//! small round.
//!
//! Modules depend in one direction: `round` → `faults` → `load` → `formats` → `cluster` →
//! `balancer`. All of them write the `history`, which `checker` reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may panic"
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
