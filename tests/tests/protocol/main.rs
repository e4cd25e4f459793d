//! The protocols of the formats, request by request: hosted repositories, proxies and groups.

#[path = "../../../plugins/cargo/tests/a_crate.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod a_crate;

#[path = "../../../plugins/helm/tests/chart.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod chart;

#[path = "../../../plugins/rubygems/tests/gem.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod gem;

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod wheel;

#[path = "../../../plugins/composer/tests/zip.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod zip;

mod advisories;
mod advisory_ranges;
mod client_sentences;
mod composer_audit;
mod composer_former_keys;
mod composer_protocol;
mod compression;
mod content;
mod disclosure;
mod early;
mod first_sight;
mod generic_proxy;
mod hidden_names;
mod kept_answers;
mod kept_proxy;
mod large_indexes;
mod lenient_documents;
mod maven_proxy;
mod maven_upstreams;
mod npm_dialects;
mod npm_groups;
mod npm_proxy;
mod npm_proxy_refusals;
mod npm_publish;
mod npm_upstream;
mod oci_hosted;
mod oci_proxy;
mod oci_proxy_age;
mod oci_proxy_credentials;
mod oci_proxy_failures;
mod oci_push;
mod oci_sessions;
mod package_codes;
mod package_limits;
mod paths;
mod probes;
mod proxy;
mod proxy_credentials;
mod proxy_failures;
mod proxy_pace;
mod proxy_reach;
mod proxy_rules;
mod python_forms;
mod python_proxy;
mod python_upstreams;
mod redirects;
mod registry_codes;
mod repository_list;
mod root_claims;
mod token_codes;
mod unreadable_metadata;
mod upstream_reach;
mod upstream_statuses;
