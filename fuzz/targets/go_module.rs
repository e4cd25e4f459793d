//! A module's zip or its `go.mod`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::go_module(bytes));
