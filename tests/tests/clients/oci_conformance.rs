//! The distribution specification's own conformance suite against a server: `just conformance PROGRAM`, where the suite is a
//! program that whoever runs this has. It comes through no package registry, so without one this says that it was left out; the
//! plugin's table asks the same.

use packhouse_tests::clients::run;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Server, checkout, skip};
use serde_json::json;
use std::process::Command;
use tempfile::TempDir;

/// Where the suite is.
const PROGRAM: &str = "PACKHOUSE_CONFORMANCE";
/// Which version of the specification it asks about, where it is not 1.1; 1.1.1 is the suite as it was tagged then, another program.
const VERSION: &str = "PACKHOUSE_CONFORMANCE_VERSION";
const TAGGED: &str = "1.1.1";

/// What of the tagged suite fails: it wants 404 for a reference that is no tag by any grammar, and a product's own rule says 400.
const KNOWN: [&str; 3] = [
    "Pull Pull manifests [It] HEAD request to nonexistent manifest should return 404",
    "Pull Pull manifests [It] GET nonexistent manifest should return 404",
    "Push Manifest Upload [It] GET nonexistent manifest should return 404",
];

#[test]
fn the_official_suite_finds_what_is_known_and_no_more() {
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
    suite.env("OCI_USERNAME", OWNER).env("OCI_PASSWORD", &repository.token.secret);
    if version == TAGGED { tagged(&mut suite, &server) } else { current(&mut suite, &server, &version) }
}

/// The suite as it is now: everything passes but what the server does not do, as docs/formats/oci.md says, which is left out.
fn current(suite: &mut Command, server: &Server, version: &str) {
    suite.env("OCI_REGISTRY", server.packages().to_string()).env("OCI_TLS", "disabled");
    for (name, value) in [
        ("OCI_VERSION", version),
        ("OCI_REPO1", "repositories/conformance/one"),
        ("OCI_REPO2", "repositories/conformance/two"),
        ("OCI_API_BLOBS_DELETE", "false"),
        ("OCI_DATA_SHA512", "false"),
    ] {
        suite.env(name, value);
    }
    let said = run(suite);
    let lines = || said.text.lines().filter_map(summary_line);
    let count = |status: &str| -> u64 {
        let number = lines().find(|(name, _)| *name == status).and_then(|(_, number)| number.parse().ok());
        number.unwrap_or_else(|| panic!("it does not say how many are {status}:\n{}", said.text))
    };
    let [pass, fail, error, skipped] = ["Pass", "FAIL", "Error", "Skip"].map(count);
    println!("version {version}: {pass} passed, {fail} failed, {error} errors, {skipped} skipped");
    let left_out: Vec<&str> =
        lines().filter(|(_, is)| matches!(*is, "Disabled" | "Skip")).map(|(name, _)| name).collect();
    println!("left out: {}", left_out.join(", "));
    assert!(said.success && fail + error == 0 && pass > 500, "{}", said.text);
    let is_known = |name: &&str| {
        ["Blob delete", "sha512", "Sparse"].iter().any(|known| name.contains(known))
            // What the next version adds.
            || (version == "1.1" && ["Blob upload cancel", "tag params", "Tag Param"].iter().any(|new| name.contains(new)))
    };
    assert!(left_out.iter().all(is_known), "{left_out:?}");
}

/// A line of the summary: what it is about, and what became of it. None for another line.
fn summary_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim().split_once("..")?;
    Some((name, rest.trim_start_matches(['.', ':', ' '])))
}

/// The suite of the specification's tag v1.1.1, built with `go test -c`.
fn tagged(suite: &mut Command, server: &Server) {
    for (name, value) in [
        ("OCI_ROOT_URL", server.base_url().as_str()),
        ("OCI_NAMESPACE", "repositories/conformance/one"),
        ("OCI_CROSSMOUNT_NAMESPACE", "repositories/conformance/two"),
        ("OCI_TEST_PULL", "1"),
        ("OCI_TEST_PUSH", "1"),
        ("OCI_TEST_CONTENT_DISCOVERY", "1"),
        ("OCI_TEST_CONTENT_MANAGEMENT", "1"),
    ] {
        suite.env(name, value);
    }
    let said = run(suite.arg("-ginkgo.no-color"));
    let failed: Vec<&str> =
        said.text.lines().filter_map(|line| line.trim().strip_prefix("[FAIL] ")).collect();
    let summary = said.text.lines().find(|line| line.contains(" Passed | ")).unwrap_or(&said.text);
    println!("tag v{TAGGED}: {summary}\n{}", failed.join("\n"));
    let unknown = |line: &&str| !KNOWN.iter().any(|known| line.ends_with(known));
    assert!(failed.len() == KNOWN.len() && !failed.iter().any(unknown), "{}", said.text);
}
