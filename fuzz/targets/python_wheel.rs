//! A wheel as it is uploaded, byte by byte.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::python_wheel(bytes));
