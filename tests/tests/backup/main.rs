//! Backups from outside: taken beside a running server, restored into either storage, damaged, killed, encrypted, pruned.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

mod damage;
mod keys;
mod kills;
mod load;
mod moves;
mod prunes;
#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod release;
mod scale;
mod told;
#[path = "../../../plugins/python/tests/wheel.rs"]
mod wheel;
mod world;
