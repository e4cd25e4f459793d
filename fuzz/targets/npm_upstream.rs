//! A packument from the upstream of an npm proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::npm_upstream(bytes));
