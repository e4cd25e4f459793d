//! The upstream's documents of a proxy's packages.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::composer_upstream(bytes));
