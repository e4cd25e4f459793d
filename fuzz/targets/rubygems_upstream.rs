//! The compact index from the upstream of a gem proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::rubygems_upstream(bytes));
