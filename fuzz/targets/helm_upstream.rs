//! The upstream's index of a proxy's charts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::helm_upstream(bytes));
