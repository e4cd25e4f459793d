//! The distribution specification's own conformance suite against a server: `just conformance PROGRAM`, where the suite is a
//! program that whoever runs this has. It comes through no package registry, so without one this says that it was left out; the
//! plugin's table asks the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::clients::run;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Server, checkout, skip};
use serde_json::json;
use std::process::Command;
use tempfile::TempDir;

/// Where the suite is.
const PROGRAM: &str = "PACKHOUSE_CONFORMANCE";
/// Which version of the specification it asks about, where it is not 1.1.
const VERSION: &str = "PACKHOUSE_CONFORMANCE_VERSION";

#[test]
fn the_official_suite_passes() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        return skip("the OCI conformance suite", "`just conformance PROGRAM` runs it");
    };
    let version = std::env::var(VERSION).unwrap_or_else(|_| "1.1".to_owned());
    let server = Server::start();
    let repository = ImageRepository::create(&server, "conformance", &json!({}));
    // Its reports go here, and it finds no settings file.
    let home = TempDir::new().unwrap();
    let mut suite = Command::new(checkout().join(program));
    suite.env_clear().current_dir(home.path()).env("HOME", home.path());
    suite.env("OCI_REGISTRY", server.packages().to_string()).env("OCI_TLS", "disabled");
    suite.env("OCI_USERNAME", OWNER).env("OCI_PASSWORD", &repository.token.secret);
    for (name, value) in [
        ("OCI_VERSION", version.as_str()),
        ("OCI_REPO1", "repositories/conformance/one"),
        ("OCI_REPO2", "repositories/conformance/two"),
        // What the server does not do, as docs/formats/oci.md says.
        ("OCI_API_BLOBS_DELETE", "false"),
        ("OCI_DATA_SHA512", "false"),
    ] {
        suite.env(name, value);
    }
    let said = run(&mut suite);
    let count = |status: &str| -> u64 {
        let line = said.text.lines().find(|line| line.trim_start().starts_with(&format!("{status}..")));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("it does not say how many are {status}:\n{}", said.text))
    };
    let [pass, fail, error, skipped] = ["Pass", "FAIL", "Error", "Skip"].map(count);
    println!("version {version}: {pass} passed, {fail} failed, {error} errors, {skipped} skipped");
    assert!(said.success && fail + error == 0 && pass > 500, "{}", said.text);
}
