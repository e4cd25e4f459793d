//! A package's zip, or the composer.json of one that is right but for it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::composer_package(bytes));
