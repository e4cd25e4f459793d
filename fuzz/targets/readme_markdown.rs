//! A README in Markdown.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::readme_markdown(bytes));
