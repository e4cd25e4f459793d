//! The upstream's compact index of a proxy's gems.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::rubygems_upstream(bytes));
