//! An index from the upstream of a chart proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::helm_upstream(bytes));
