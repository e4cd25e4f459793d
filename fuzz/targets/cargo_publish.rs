//! Publishes of cargo.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::cargo_publish(bytes));
