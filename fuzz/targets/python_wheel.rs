//! An uploaded wheel.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::python_wheel(bytes));
