//! A gem, or the YAML of one that is right but for it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::rubygems_gem(bytes));
