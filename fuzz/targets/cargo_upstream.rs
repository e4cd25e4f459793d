//! Another registry's index.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::cargo_upstream(bytes));
