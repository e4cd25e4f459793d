//! The index of an upstream registry.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::cargo_upstream(bytes));
