//! The upstream's metadata of a proxy's package.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::composer_upstream(bytes));
