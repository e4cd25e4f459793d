//! Listings from the upstream of a file proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::generic_listing(bytes));
