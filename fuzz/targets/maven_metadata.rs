//! An uploaded `maven-metadata.xml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::maven_metadata(bytes));
