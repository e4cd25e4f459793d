//! Tests that need crates of the host: the runtime over a store, protocol tables through Wasm,
//! leases, recordings.

#![cfg(test)]

#[path = "../../../plugins/helm/tests/chart.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod chart;

#[path = "../../../plugins/rubygems/tests/gem.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod gem;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod wheel;

#[path = "../../../plugins/composer/tests/zip.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod zip;

mod fifth_format;
mod judge;
mod leases;
mod lookups;
mod replay;
mod sandbox;
mod sandbox_instance;
mod sandbox_load;
mod sandbox_runtime;
mod seeds;
mod wasm_table;
mod wasm_world;
