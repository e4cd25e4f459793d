//! A recording of a plugin's call.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::recording(bytes));
