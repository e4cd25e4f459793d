//! The METADATA of a wheel.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::python_metadata(bytes));
