//! A gem's archive or its YAML.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::rubygems_gem(bytes));
