//! A pushed manifest.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::oci_manifest(bytes));
