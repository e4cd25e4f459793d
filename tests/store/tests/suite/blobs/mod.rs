//! What the store promises of blobs, over a folder, over memory and over S3: one suite, every test in all that can take it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    reason = "what fails here fails a test; helpers are not marked as tests"
)]

mod backup;
mod collection;
mod damage;
mod holding;
mod parts;
mod repair;
mod round_trips;
mod support;
mod uploads;
