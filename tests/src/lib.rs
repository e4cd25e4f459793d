//! Shared code of the tests that run the whole server. It starts servers, sends exact bytes by
//! HTTP, makes accounts and tokens through the API, and runs real client programs.
//!
//! Everything here fails loudly: a broken harness must not look like a passing test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may panic"
)]

pub mod api;
pub mod authority;
pub mod certified;
pub mod chromium;
pub mod cli;
pub mod client_home;
pub mod clients;
pub mod clock;
pub mod database;
pub mod deaf_wire;
pub mod debian;
pub mod digests;
pub mod docker;
pub mod egress;
pub mod fault_proxy;
pub mod faults;
pub mod go;
pub mod http;
pub mod image_proxy;
pub mod images;
pub mod npm;
pub mod otlp;
pub mod payload;
pub mod pebble;
pub mod person;
pub mod pooler;
pub mod portal;
pub mod proxy;
pub mod python;
pub mod race;
pub mod repository;
pub mod s3;
pub mod said;
pub mod server;
pub mod sigstore;
pub mod smtp;
pub mod strace;
pub mod tls;
pub mod totp;
pub mod tuf;
pub mod upstream;
pub mod wire;

pub use api::{Api, ApiToken, MavenRepository, days_ahead};
pub use http::{Client, Connection, Request, Response};
pub use server::{Server, ServerBuilder};

use std::io::Write as _;
use std::path::PathBuf;

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the checkout").to_path_buf()
}

/// Returns true if large sizes and many rounds are requested (`just test-all`).
pub fn long() -> bool {
    std::env::var_os("PACKHOUSE_TEST_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Reports that a test left something out, and why. The line appears although the test passes. The
/// function also appends it to `target/skipped.txt`, which `just test` prints at its end.
pub fn skip(name: &str, reason: &str) {
    let line = format!("skipped: {name}: {reason}\n");
    // The test runner captures the output of `eprintln!`, but not direct writes to standard error.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let list = checkout().join("target/skipped.txt");
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(list) {
        let _ = file.write_all(line.as_bytes());
    }
}
