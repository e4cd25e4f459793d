//! Moving in and out, by the built program: from trees, indexes, registries and managers into a repository, out of it into a folder and back,
//! with real clients on both sides; damaged, refused, killed, and run again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

mod clock;
mod images;
mod js;
mod kills;
mod managers;
mod maven;
mod page;
mod peers;
mod python;
mod refusals;
#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod release;
mod scale;
#[path = "../../../plugins/python/tests/wheel.rs"]
mod wheel;
mod world;
