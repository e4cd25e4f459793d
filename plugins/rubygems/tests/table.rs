//! The protocol of RubyGems as a table of requests and expected responses.
//!
//! `protocol.rs` runs the rows against the native code and the in-memory host. The workspace's
//! tests include this file, and run the same rows against the compiled component in the real
//! runtime. Times differ between the two runs, so no row depends on a time. All rows run in one
//! repository, in the order of [`cases`].

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::gem::{archive, built, gem, gzip, needs, sha256, yaml};
use packhouse_testkit::Case;

/// The rows for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_pushed(), pushes(), documents(), files(), refused(), yanks(), deletions()].concat()
}

/// The rows for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    vec![
        push("a gem", &gem("same", "1.0", ""), 200),
        push("the same bytes again", &gem("same", "1.0", ""), 200),
        push("other bytes", &gem("same", "1.0", "requirement: x\n"), 409).code("version_already_exists"),
    ]
}

/// The rows for a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let (first, second) = (gem("again", "1.0", ""), gem("again", "1.0", "x: y\n"));
    vec![
        push("a gem", &first, 200),
        push("other bytes while the gem exists", &second, 409),
        Case::new("deletion of the gem", "DELETE", "/gems/again-1.0.gem", 204),
        push("other bytes with the deleted number", &second, 200),
        get("the other bytes are served", "/gems/again-1.0.gem", 200).content(&second),
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
        get("the address of the repository", "/", 200),
        get("empty versions", "/versions", 200).content("created_at: 1970-01-01T00:00:00.000Z\n---\n"),
        get("empty names", "/names", 200).content("---\n"),
        get("a missing gem", "/info/my-rack", 404).code("not_found"),
        get("a missing file", "/gems/my-rack-1.9.gem", 404).code("not_found"),
        get("a missing specification", "/quick/Marshal.4.8/my-rack-1.9.gemspec.rz", 404).code("not_found"),
        get("an empty index", "/specs.4.8.gz", 200).header("content-type", "application/gzip"),
        get("a request for an API key", "/api/v1/api_key", 405).code("not_supported"),
        get("an unknown path", "/nothing/at/all", 404),
        Case::new("an unsupported method", "PUT", "/versions", 405).header("allow", "GET, HEAD"),
    ]
}

fn pushes() -> Vec<Case> {
    vec![
        push("a gem", &gem("my-rack", "1.9", ""), 200).content("Successfully registered gem: my-rack (1.9)"),
        push("a gem with a dependency", &rack(), 200),
        push("a gem for a platform", &built("my-rack", "1.10", &yaml("my-rack", "1.10", "java", "")), 200)
            .content("Successfully registered gem: my-rack (1.10-java)"),
        push("a pre-release", &gem("my-rack", "2.0.rc1", ""), 200),
        push("another gem", &gem("other", "0.1", ""), 200),
        Case::new("a gem with attestations", "POST", "/api/v1/gems", 415)
            .with("content-type", "multipart/form-data; boundary=x")
            .body("--x--")
            .code("attestations_not_supported"),
        push("the same gem again", &gem("my-rack", "1.9", ""), 409).code("version_already_exists"),
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
        get("an invalid name", "/info/a,b", 404),
    ]
}

fn files() -> Vec<Case> {
    vec![
        get("a gem's file", "/gems/my-rack-1.10.gem", 200)
            .content(rack())
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("its specification", "/quick/Marshal.4.8/my-rack-1.10.gemspec.rz", 200),
        get("the file of a missing version", "/gems/my-rack-3.0.gem", 404),
        get("a file name that is not of a gem", "/gems/my-rack.zip", 404),
        get("a file name that is not of a specification", "/quick/Marshal.4.8/my-rack-1.10", 404),
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
        push("an empty body", b"", 422).code("invalid_gem"),
        push("a body that is not an archive", b"nonsense", 422).code("invalid_gem"),
        push("a wrong checksum", &archive(&metadata, &data, Some(&other)), 422).code("invalid_gem"),
        push("a missing checksum", &archive(&metadata, &data, Some("---\nSHA256: {}\n")), 422)
            .code("invalid_gem"),
        push("unreadable checksums", &archive(&metadata, &data, Some("[")), 422).code("invalid_gem"),
        push("a decompression bomb", &archive(&bomb, &data, None), 422).code("invalid_gem"),
        push("metadata that is not YAML", &archive(&gzip(b"{{{"), &data, None), 422).code("invalid_gem"),
        push("a name with a path", &bad("../bad", "1.0", "ruby"), 422).code("invalid_gem"),
        push("a name with a newline", &bad("\"a\\nb\"", "1.0", "ruby"), 422).code("invalid_gem"),
        push("an invalid version", &bad("bad", "1.0 |x", "ruby"), 422).code("invalid_gem"),
        push("an invalid platform", &bad("bad", "1.0", "a,b"), 422).code("invalid_gem"),
        get("no refused gem was stored", "/info/bad", 404),
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
        yank("a version that is yanked already", "gem_name=my-rack&version=1.9", 200)
            .content("The gem my-rack (1.9) was yanked already"),
        yank("a version of a platform", "gem_name=my-rack&version=1.10&platform=java", 200),
        yank("a missing version", "gem_name=my-rack&version=7.0", 404).code("not_found"),
        yank("a request without fields", "", 400).code("invalid_request"),
        get("the yanked versions are not in info", "/info/my-rack", 200)
            .lacks("\n1.9 ")
            .lacks("1.10-java")
            .contains("\n1.10 "),
        get("the yanked versions are not in versions", "/versions", 200).lacks(" 1.9 ").lacks("1.10-java"),
        get("the yanked file is not served", "/gems/my-rack-1.9.gem", 404),
        push("the yanked number stays used", &gem("my-rack", "1.9", ""), 409).code("version_already_exists"),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("deletion of a gem", "DELETE", "/gems/other-0.1.gem", 204),
        Case::new("deletion of the same gem again", "DELETE", "/gems/other-0.1.gem", 404).code("not_found"),
        get("the deleted gem is gone", "/info/other", 404),
        get("the deleted name is gone", "/names", 200).content("---\nmy-rack\n"),
        push("the deleted number stays used", &gem("other", "0.1", ""), 409).code("version_already_exists"),
    ]
}
