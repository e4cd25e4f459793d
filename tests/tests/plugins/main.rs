//! Plugins and policies in a running server: the contract, the life cycle, distribution, and the
//! tools for authors.

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
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
mod trusted_components;
