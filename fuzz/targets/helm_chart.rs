//! A chart's archive or its Chart.yaml.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packhouse_fuzz::helm_chart(bytes));
