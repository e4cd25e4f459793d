//! Documents from the upstream of a Composer proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::composer_upstream(bytes));
