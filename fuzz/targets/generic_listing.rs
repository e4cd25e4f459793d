//! What another repository of files lists.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::generic_listing(bytes));
