//! Guarantees of the store for blobs, over a folder, over memory and over S3. Each test runs over
//! every storage that supports it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    unreachable_pub,
    reason = "a failure here fails a test; helpers are not marked as tests"
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
