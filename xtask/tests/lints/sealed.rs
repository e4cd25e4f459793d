//! The contract is sealed: no code of the host names a format. The exception is names that the
//! specification itself requires in requests and responses, such as the path `npm-login`. They
//! occur only in the files that are listed here.
//!
//! A test in `fifth_format.rs` shows that the host needs only the description of a format, not its
//! name. This list is a second check.

use std::collections::BTreeSet;
use std::path::Path;

use packhouse_tests::{checkout, database};

/// Files that may contain names of formats, each with the reason.
const LISTED: [(&str, &str); 12] = [
    ("host/api/src/operations/confirmations.rs", "`finish_npm_login` as an action to confirm"),
    ("host/api/src/operations/logins.rs", "the name of the token that a sign-in makes"),
    ("host/api/src/logins/mod.rs", "`npm-logins` as a path"),
    ("host/portal/src/pages/login.rs", "`npm-login` as a path"),
    ("host/app/src/login_links.rs", "`npm-login` in the address of its page"),
    ("host/wire/src/catalogue.rs", "codes and sentences of the specification"),
    ("host/api/src/tokens/request.rs", "`npm` as a token's format"),
    // The host installs plugins from OCI registries. It needs their protocol even if no plugin for
    // images is installed.
    ("host/app/src/plugins/registry/protocol.rs", "the protocol of registries"),
    ("host/app/src/plugins/registry/credentials.rs", "the format of a file of credentials"),
    ("host/config/src/keys.rs", "the format of the file of registry credentials"),
    ("host/attest/src/subject.rs", "the name of a digest in a signed document"),
    ("host/server/src/cli/plugins/distribution.rs", "the usual place of the file of registry credentials"),
];

/// Formats, their clients and their documents.
const NAMES: &[&str] = &[
    "maven",
    "gradle",
    "pom",
    "npm",
    "packument",
    "pypi",
    "python",
    "twine",
    "wheel",
    "docker",
    "oci",
    "nuget",
    "rubygems",
    "helm",
    "goproxy",
    "sumdb",
];

/// Words of the code of a file, without comments and without the tests at its end.
fn words(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let apart = |symbol: char| !symbol.is_ascii_alphanumeric();
    lines.flat_map(|line| line.split(apart).map(str::to_ascii_lowercase).collect::<Vec<_>>()).collect()
}

fn named(path: &Path) -> Vec<&'static str> {
    let words = words(&std::fs::read_to_string(path).unwrap());
    NAMES.iter().copied().filter(|name| words.contains(*name)).collect()
}

fn sources() -> Vec<String> {
    let root = checkout();
    let mut files = Vec::new();
    for part in std::fs::read_dir(root.join("host")).unwrap() {
        database::list(&part.unwrap().path().join("src"), &mut files);
    }
    // A line of the list is the path of a file and its size.
    let path = |file: &String| file.rsplit_once(' ').map_or(file.clone(), |(path, _)| path.to_owned());
    let relative = |file: &String| path(file).trim_start_matches(&format!("{}/", root.display())).to_owned();
    let mut files: Vec<String> = files.iter().map(relative).filter(|file| file.ends_with(".rs")).collect();
    files.retain(|file| !file.contains("/tests/") && !file.ends_with("/tests.rs"));
    files
}

#[test]
fn no_code_of_the_host_names_a_format() {
    let files = sources();
    assert!(files.len() > 100, "the sources were not found: {files:?}");
    let listed = |file: &String| LISTED.iter().any(|(path, _)| path == file);
    let named = files.iter().filter(|file| !listed(file)).map(|file| (file, named(&checkout().join(file))));
    let named: Vec<_> = named.filter(|(_, names)| !names.is_empty()).collect();
    assert!(
        named.is_empty(),
        "a new format must not need changes of the host, but these files name formats: {named:?}"
    );
}

#[test]
fn every_listed_file_still_names_a_format() {
    for (path, what) in LISTED {
        assert!(
            !named(&checkout().join(path)).is_empty(),
            "{path} no longer contains {what}: remove it from the list"
        );
    }
}
