//! An upstream's page of a project.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::python_upstream(bytes));
