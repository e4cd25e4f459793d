//! Real clients of each format against a running server: the commands that people type, and the
//! refusals that they read.

#[path = "../../../plugins/helm/tests/chart.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod chart;

#[path = "../../../plugins/rubygems/tests/gem.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod gem;

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod wheel;

#[path = "../../../plugins/composer/tests/zip.rs"]
#[allow(dead_code, reason = "the module is shared with other tests")]
mod zip;

mod acme;
mod attestations;
mod browser_login;
mod cargo_clients;
mod composer_clients;
mod connection;
mod connection_clients;
mod generic_clients;
mod go_clients;
mod gradle_client;
mod helm_clients;
mod id_token_limits;
mod maven_clients;
mod maven_ivy;
mod maven_proxy_clients;
mod moving;
mod npm_clients;
mod npm_services;
mod oci_artifacts;
mod oci_clients;
mod oci_conformance;
mod oci_go_clients;
mod oci_proxy_clients;
mod python_clients;
mod python_proxy_clients;
mod rubygems_clients;
mod tls;
mod trusted_publishing;
