//! The conformance suite of the distribution specification: `just conformance PROGRAM` runs the
//! caller's copy of the suite. No package registry has the suite, so without a copy the test
//! reports that it is skipped. The plugin's protocol table covers the same cases.

use packhouse_tests::clients::run;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Server, checkout, skip};
use serde_json::json;
use std::process::Command;
use tempfile::TempDir;

/// Variable with the path of the suite.
const PROGRAM: &str = "PACKHOUSE_CONFORMANCE";
/// Variable with the version of the specification, by default 1.1. The value 1.1.1 means the suite
/// of the tag v1.1.1, which is a different program.
const VERSION: &str = "PACKHOUSE_CONFORMANCE_VERSION";
const TAGGED: &str = "1.1.1";

/// Known failures of the tagged suite. It expects 404 for a reference that no grammar of tags
/// allows; this server deliberately answers 400.
const KNOWN: [&str; 3] = [
    "Pull Pull manifests [It] HEAD request to nonexistent manifest should return 404",
    "Pull Pull manifests [It] GET nonexistent manifest should return 404",
    "Push Manifest Upload [It] GET nonexistent manifest should return 404",
];

#[test]
fn the_official_suite_has_only_known_failures() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        return skip("the OCI conformance suite", "`just conformance PROGRAM` runs it");
    };
    let version = std::env::var(VERSION).unwrap_or_else(|_| "1.1".to_owned());
    let server = Server::start();
    let repository = ImageRepository::create(&server, "conformance", &json!({}));
    // The suite runs in an empty folder: it writes its reports there, and finds no settings file.
    let home = TempDir::new().unwrap();
    let mut suite = Command::new(checkout().join(program));
    suite.env_clear().current_dir(home.path()).env("HOME", home.path());
    suite.env("OCI_USERNAME", OWNER).env("OCI_PASSWORD", &repository.token.secret);
    if version == TAGGED { tagged(&mut suite, &server) } else { current(&mut suite, &server, &version) }
}

/// Runs the suite of the main branch. Everything passes except unsupported features, which are
/// switched off (docs/clients/oci.md).
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
    let output = run(suite);
    let lines = || output.text.lines().filter_map(summary_line);
    let count = |status: &str| -> u64 {
        let number = lines().find(|(name, _)| *name == status).and_then(|(_, number)| number.parse().ok());
        number.unwrap_or_else(|| panic!("the suite prints no number of {status} tests:\n{}", output.text))
    };
    let [pass, fail, error, skipped] = ["Pass", "FAIL", "Error", "Skip"].map(count);
    println!("version {version}: {pass} passed, {fail} failed, {error} errors, {skipped} skipped");
    let left_out: Vec<&str> =
        lines().filter(|(_, is)| matches!(*is, "Disabled" | "Skip")).map(|(name, _)| name).collect();
    println!("left out: {}", left_out.join(", "));
    assert!(output.success && fail + error == 0 && pass > 500, "{}", output.text);
    let is_known = |name: &&str| {
        ["Blob delete", "sha512", "Sparse"].iter().any(|known| name.contains(known))
            // Tests of features that only the next version of the specification has.
            || (version == "1.1" && ["Blob upload cancel", "tag params", "Tag Param"].iter().any(|new| name.contains(new)))
    };
    assert!(left_out.iter().all(is_known), "{left_out:?}");
}

/// A line of the summary: the test and its result. `None` for other lines.
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
    let output = run(suite.arg("-ginkgo.no-color"));
    let failed: Vec<&str> =
        output.text.lines().filter_map(|line| line.trim().strip_prefix("[FAIL] ")).collect();
    let summary = output.text.lines().find(|line| line.contains(" Passed | ")).unwrap_or(&output.text);
    println!("tag v{TAGGED}: {summary}\n{}", failed.join("\n"));
    let unknown = |line: &&str| !KNOWN.iter().any(|known| line.ends_with(known));
    assert!(failed.len() == KNOWN.len() && !failed.iter().any(unknown), "{}", output.text);
}
