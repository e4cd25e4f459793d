//! A project page from the upstream of a Python proxy.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::python_upstream(bytes));
