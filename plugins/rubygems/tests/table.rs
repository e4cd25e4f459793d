//! The protocol of RubyGems as a table: what clients send, and what must come back.
//!
//! It runs natively over the memory host (`protocol.rs`), and through the component and the runtime (the workspace's tests include
//! this file). Times differ between the two, so that no row depends on one. All run in one repository, in their order.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests, a fault is to be loud")]

use super::gem::{archive, built, gem, gzip, needs, sha256, yaml};
use packhouse_testkit::Case;

/// For a repository with the settings that it has if nothing is said, in which nothing is published.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_pushed(), pushes(), documents(), files(), refused(), yanks(), deletions()].concat()
}

/// For a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    vec![
        push("first", &gem("same", "1.0", ""), 200),
        push("the same bytes again", &gem("same", "1.0", ""), 200),
        push("other bytes", &gem("same", "1.0", "requirement: x\n"), 409).code("version_already_exists"),
    ]
}

/// For a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let (first, second) = (gem("again", "1.0", ""), gem("again", "1.0", "x: y\n"));
    vec![
        push("first", &first, 200),
        push("while it is there", &second, 409),
        Case::new("deleted", "DELETE", "/gems/again-1.0.gem", 204),
        push("its number again", &second, 200),
        get("the other bytes", "/gems/again-1.0.gem", 200).content(&second),
    ]
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn push(name: &str, file: &[u8], status: u16) -> Case {
    Case::new(name, "POST", "/api/v1/gems", status)
        .with("content-type", "application/octet-stream")
        .body(file)
}

fn rack() -> Vec<u8> {
    gem("my-rack", "1.10", &needs("rake", "~>", "13.0"))
}

fn nothing_pushed() -> Vec<Case> {
    vec![
        get("the address works", "/", 200),
        get("no versions", "/versions", 200).content("created_at: 1970-01-01T00:00:00.000Z\n---\n"),
        get("no names", "/names", 200).content("---\n"),
        get("no gem", "/info/my-rack", 404).code("not_found"),
        get("no file", "/gems/my-rack-1.9.gem", 404).code("not_found"),
        get("no specification", "/quick/Marshal.4.8/my-rack-1.9.gemspec.rz", 404).code("not_found"),
        get("an empty index", "/specs.4.8.gz", 200).header("content-type", "application/gzip"),
        get("no key is given out", "/api/v1/api_key", 405).code("not_supported"),
        get("no such address", "/nothing/at/all", 404),
        Case::new("a method that is not there", "PUT", "/versions", 405).header("allow", "GET, HEAD"),
    ]
}

fn pushes() -> Vec<Case> {
    vec![
        push("a gem", &gem("my-rack", "1.9", ""), 200).content("Successfully registered gem: my-rack (1.9)"),
        push("with a dependency", &rack(), 200),
        push("for a platform", &built("my-rack", "1.10", &yaml("my-rack", "1.10", "java", "")), 200)
            .content("Successfully registered gem: my-rack (1.10-java)"),
        push("a pre-release", &gem("my-rack", "2.0.rc1", ""), 200),
        push("another", &gem("other", "0.1", ""), 200),
        Case::new("a gem with attestations", "POST", "/api/v1/gems", 415)
            .with("content-type", "multipart/form-data; boundary=x")
            .body("--x--")
            .code("attestations_not_supported"),
        push("the same again", &gem("my-rack", "1.9", ""), 409).code("version_already_exists"),
    ]
}

fn documents() -> Vec<Case> {
    let line = format!("1.10 rake:~> 13.0|checksum:{},ruby:>= 2.0\n", sha256(&rack()));
    vec![
        get("info", "/info/my-rack", 200)
            .header("content-type", "text/plain; charset=utf-8")
            .contains("---\n")
            .contains(&line)
            .contains(&format!("1.9 |checksum:{},ruby:>= 2.0\n", sha256(&gem("my-rack", "1.9", ""))))
            .contains("\n1.10-java |checksum:"),
        get("versions", "/versions", 200).contains("\nmy-rack 1.10-java ").contains("\nother 0.1 "),
        get("an old Bundler has no ETag", "/versions", 203)
            .with("user-agent", "bundler/2.3.27 rubygems/3.3.15"),
        get("names", "/names", 200).content("---\nmy-rack\nother\n"),
        get("no name", "/info/a,b", 404),
    ]
}

fn files() -> Vec<Case> {
    vec![
        get("a gem's file", "/gems/my-rack-1.10.gem", 200)
            .content(rack())
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("its specification", "/quick/Marshal.4.8/my-rack-1.10.gemspec.rz", 200),
        get("of another version", "/gems/my-rack-3.0.gem", 404),
        get("no gem's name", "/gems/my-rack.zip", 404),
        get("no specification's name", "/quick/Marshal.4.8/my-rack-1.10", 404),
    ]
}

fn refused() -> Vec<Case> {
    let (metadata, data) = (gzip(yaml("bad", "1.0", "ruby", "").as_bytes()), gzip(b"data"));
    let other =
        format!("---\nSHA256:\n  metadata.gz: {}\n  data.tar.gz: {}\n", sha256(&metadata), sha256(b"other"));
    let bomb = gzip(&vec![b'#'; 4 << 20]);
    let bad =
        |name: &str, version: &str, platform: &str| built("bad", "1.0", &yaml(name, version, platform, ""));
    vec![
        push("nothing", b"", 422).code("invalid_gem"),
        push("no archive", b"nonsense", 422).code("invalid_gem"),
        push("a wrong checksum", &archive(&metadata, &data, Some(&other)), 422).code("invalid_gem"),
        push("no checksum of a file", &archive(&metadata, &data, Some("---\nSHA256: {}\n")), 422)
            .code("invalid_gem"),
        push("checksums that are none", &archive(&metadata, &data, Some("[")), 422).code("invalid_gem"),
        push("a bomb", &archive(&bomb, &data, None), 422).code("invalid_gem"),
        push("no YAML", &archive(&gzip(b"{{{"), &data, None), 422).code("invalid_gem"),
        push("a name that leads elsewhere", &bad("../bad", "1.0", "ruby"), 422).code("invalid_gem"),
        push("a name with a line's end", &bad("\"a\\nb\"", "1.0", "ruby"), 422).code("invalid_gem"),
        push("no version", &bad("bad", "1.0 |x", "ruby"), 422).code("invalid_gem"),
        push("no platform", &bad("bad", "1.0", "a,b"), 422).code("invalid_gem"),
        get("nothing of it was kept", "/info/bad", 404),
    ]
}

fn yanks() -> Vec<Case> {
    let yank = |name: &str, form: &str, status| {
        Case::new(name, "DELETE", "/api/v1/gems/yank", status)
            .with("content-type", "application/x-www-form-urlencoded")
            .body(form)
    };
    vec![
        yank("a version", "gem_name=my-rack&version=1.9", 200)
            .content("Successfully deleted gem: my-rack (1.9)"),
        yank("a version that was yanked", "gem_name=my-rack&version=1.9", 200)
            .content("The gem my-rack (1.9) was yanked already"),
        yank("of a platform", "gem_name=my-rack&version=1.10&platform=java", 200),
        yank("that is not there", "gem_name=my-rack&version=7.0", 404).code("not_found"),
        yank("of nothing", "", 400).code("invalid_request"),
        get("it is not in info", "/info/my-rack", 200).lacks("\n1.9 ").lacks("1.10-java").contains("\n1.10 "),
        get("nor in versions", "/versions", 200).lacks(" 1.9 ").lacks("1.10-java"),
        get("its file is gone", "/gems/my-rack-1.9.gem", 404),
        push("its number stays used", &gem("my-rack", "1.9", ""), 409).code("version_already_exists"),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("a gem", "DELETE", "/gems/other-0.1.gem", 204),
        Case::new("again", "DELETE", "/gems/other-0.1.gem", 404).code("not_found"),
        get("it is gone", "/info/other", 404),
        get("its name too", "/names", 200).content("---\nmy-rack\n"),
        push("its number stays used", &gem("other", "0.1", ""), 409).code("version_already_exists"),
    ]
}
