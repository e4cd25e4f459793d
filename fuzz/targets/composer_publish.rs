//! A package's zip or its composer.json.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::composer_publish(bytes));
