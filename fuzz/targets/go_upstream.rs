//! What another module proxy says.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::go_upstream(bytes));
