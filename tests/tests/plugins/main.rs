//! Plugins and policies in a running server: the contract, their life cycle, their distribution, their authors' tools.

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that make more")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "shared with tests that make more")]
mod wheel;

mod authoring;
mod contract;
mod distribution;
mod formats;
mod lifecycle;
mod policies;
mod policy_coverage;
mod policy_patterns;
mod recordings;
mod sandbox_http;
mod trials;
mod trusted_components;
