//! Rules about the sources that the compiler does not check; `just lint` runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by a panic"
)]

mod codes;
mod plain_english;
mod sealed;
