//! What is published to npm's registry.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::npm_publish(bytes));
