//! Documents from the upstream of a module proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::go_upstream(bytes));
