//! The GOPROXY protocol as a table of requests and expected responses.
//!
//! Each row runs in two environments. In `protocol.rs`, the plugin is native code on an in-memory
//! host. The workspace's tests include this file too; there, the plugin is a WebAssembly component
//! in the host's runtime. The two environments have different clocks, so rows must not depend on
//! times, except on the time of a pseudo-version.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::wheel;
use packhouse_testkit::Case;

/// All cases, for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        publishing(),
        versions(),
        major_versions(),
        capitals(),
        refused_addresses(),
        refused_zips(),
        checksum_database(),
    ]
    .concat()
}

/// Cases for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let (path, zip) = ("/example.com/a/@v/v1.0.0.zip", module("example.com/a", "v1.0.0"));
    vec![
        put("first", path, 201, &zip),
        put("the same again", path, 201, &zip),
        put("other bytes", path, 409, &packed("example.com/a", "v1.0.0", &[("x.go", "package x")]))
            .code("version_already_exists"),
        Case::new("the first bytes are kept", "GET", path, 200).content(&zip),
    ]
}

/// The zip of a module with a `go.mod`, a source file and a README.
pub(crate) fn module(path: &str, version: &str) -> Vec<u8> {
    let go_mod = format!("module {path}\n\ngo 1.19\n\nrequire example.com/needed v1.0.0 // indirect\n");
    packed(
        path,
        version,
        &[("go.mod", &go_mod), ("a.go", "package a\n\nconst Answer = 42\n"), ("README.md", "# A\n")],
    )
}

/// The zip of a module with these files.
pub(crate) fn packed(path: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let named: Vec<(String, Vec<u8>)> = files
        .iter()
        .map(|(name, text)| (format!("{path}@{version}/{name}"), text.as_bytes().to_vec()))
        .collect();
    wheel::zip(&wheel::borrowed(&named))
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn put(name: &str, path: &str, status: u16, zip: &[u8]) -> Case {
    Case::new(name, "PUT", path, status).body(zip)
}

fn published(path: &str, version: &str) -> Case {
    let at = format!("/{path}/@v/{version}.zip");
    put(&format!("publish {path} {version}"), &at, 201, &module(path, version))
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("no list", "/example.com/a/@v/list", 404).code("not_found").contains("not found: example.com/a"),
        get("no latest", "/example.com/a/@latest", 404).code("not_found"),
        get("no version", "/example.com/a/@v/v1.0.0.info", 404)
            .contains("example.com/a@v1.0.0 is not in this repository"),
        get("no go.mod", "/example.com/a/@v/v1.0.0.mod", 404).code("not_found"),
        get("no zip", "/example.com/a/@v/v1.0.0.zip", 404).code("not_found"),
        get("no branch", "/example.com/a/@v/main.info", 404).code("not_found"),
        get("a path outside the protocol", "/example.com/a", 404).contains("a module proxy serves"),
    ]
}

fn publishing() -> Vec<Case> {
    let zip = module("example.com/a", "v1.0.0");
    vec![
        put("a version", "/example.com/a/@v/v1.0.0.zip", 201, &zip),
        get("it is listed", "/example.com/a/@v/list", 200)
            .content("v1.0.0\n")
            .header("content-type", "text/plain; charset=utf-8")
            .header("cache-control", "no-cache"),
        get("its info", "/example.com/a/@v/v1.0.0.info", 200)
            .header("content-type", "application/json")
            .header("cache-control", "private, max-age=31536000, immutable")
            .contains("{\"Version\":\"v1.0.0\",\"Time\":\"20"),
        get("its go.mod", "/example.com/a/@v/v1.0.0.mod", 200)
            .content("module example.com/a\n\ngo 1.19\n\nrequire example.com/needed v1.0.0 // indirect\n"),
        get("its zip", "/example.com/a/@v/v1.0.0.zip", 200)
            .content(&zip)
            .header("content-type", "application/zip"),
        get("it is the latest", "/example.com/a/@latest", 200).contains("\"Version\":\"v1.0.0\""),
        put("again", "/example.com/a/@v/v1.0.0.zip", 409, &zip).code("version_already_exists"),
        put(
            "without a go.mod",
            "/example.com/old/@v/v0.1.0.zip",
            201,
            &packed("example.com/old", "v0.1.0", &[("a.go", "package a")]),
        ),
        get("a go.mod is generated", "/example.com/old/@v/v0.1.0.mod", 200)
            .content("module example.com/old\n"),
    ]
}

fn versions() -> Vec<Case> {
    let pseudo = "v1.10.1-0.20261121050140-abcdefabcdef";
    vec![
        published("example.com/a", "v1.10.0"),
        published("example.com/a", "v1.9.0"),
        published("example.com/a", "v1.11.0-rc.1"),
        published("example.com/a", pseudo),
        get("sorted, without pseudo-versions", "/example.com/a/@v/list", 200)
            .content("v1.0.0\nv1.9.0\nv1.10.0\nv1.11.0-rc.1\n"),
        get("the latest is a release", "/example.com/a/@latest", 200).contains("\"Version\":\"v1.10.0\""),
        get("a pseudo-version has its commit's time", &format!("/example.com/a/@v/{pseudo}.info"), 200)
            .content(format!("{{\"Version\":\"{pseudo}\",\"Time\":\"2026-11-21T05:01:40Z\"}}")),
        published("example.com/commits", "v0.0.0-20261121050140-abcdefabcdef"),
        get("a module with only pseudo-versions lists none", "/example.com/commits/@v/list", 200).content(""),
        get("but the newest is the latest", "/example.com/commits/@latest", 200)
            .contains("v0.0.0-20261121050140-abcdefabcdef"),
    ]
}

fn major_versions() -> Vec<Case> {
    let old = packed("example.com/a", "v2.0.0+incompatible", &[("a.go", "package a")]);
    let new = module("example.com/a", "v3.0.0+incompatible");
    vec![
        published("example.com/a/v2", "v2.0.0"),
        get("a separate module", "/example.com/a/v2/@v/list", 200).content("v2.0.0\n"),
        put(
            "not below the old path",
            "/example.com/a/@v/v2.0.0.zip",
            400,
            &module("example.com/a", "v2.0.0"),
        )
        .code("invalid_version")
        .contains("ends with the major version"),
        put("nor below another major version", "/example.com/a/v3/@v/v2.0.0.zip", 400, b"x")
            .code("invalid_version"),
        put("an incompatible version", "/example.com/a/@v/v2.0.0+incompatible.zip", 201, &old),
        get("has its zip", "/example.com/a/@v/v2.0.0+incompatible.zip", 200).content(&old),
        put("an incompatible version with a go.mod", "/example.com/a/@v/v3.0.0+incompatible.zip", 400, &new)
            .code("invalid_module")
            .contains("must not end with +incompatible"),
        published("gopkg.in/a.v1", "v1.0.0"),
        put("another major version there", "/gopkg.in/a.v1/@v/v2.0.0.zip", 400, b"x").code("invalid_version"),
    ]
}

fn capitals() -> Vec<Case> {
    let zip = module("example.com/Burnt/Toml", "v1.0.0-RC1");
    vec![
        put("capitals are escaped", "/example.com/!burnt/!toml/@v/v1.0.0-!r!c1.zip", 201, &zip),
        get("the list of an escaped path", "/example.com/!burnt/!toml/@v/list", 200).content("v1.0.0-RC1\n"),
        get("in versions too", "/example.com/!burnt/!toml/@v/v1.0.0-!r!c1.info", 200)
            .contains("\"v1.0.0-RC1\""),
        get("unescaped capitals are refused", "/example.com/Burnt/Toml/@v/list", 404).code("not_found"),
        get("another case is another module", "/example.com/burnt/toml/@v/list", 404).code("not_found"),
    ]
}

fn refused_addresses() -> Vec<Case> {
    let put = |name: &str, path: &str| put(name, path, 400, b"x").code("invalid_path");
    vec![
        put("a go.mod", "/example.com/a/@v/v9.0.0.mod").contains("Only the zip"),
        put("an info", "/example.com/a/@v/v1.9.9.info").contains("Only the zip"),
        put("a list", "/example.com/a/@v/list"),
        put("a branch", "/example.com/a/@v/main.zip"),
        put("half a version", "/example.com/a/@v/v1.2.zip"),
        put("no host", "/a/@v/v1.0.0.zip"),
        put("an unescaped capital", "/example.com/A/@v/v1.0.0.zip"),
        Case::new("clients cannot delete", "DELETE", "/example.com/a/@v/v1.0.0.zip", 405)
            .code("method_not_allowed"),
    ]
}

fn refused_zips() -> Vec<Case> {
    let path = "example.com/bad";
    let refused = |name: &str, zip: &[u8], words: &str| {
        put(name, "/example.com/bad/@v/v1.0.0.zip", 400, zip).code("invalid_module").contains(words)
    };
    let of = |files: &[(&str, &str)]| packed(path, "v1.0.0", files);
    vec![
        refused("no zip", b"not a zip", "not a zip archive"),
        refused("no files", &of(&[]), "contains no files"),
        refused(
            "another module's files",
            &module("example.com/evil", "v1.0.0"),
            "is not in the folder example.com/bad@v1.0.0/",
        ),
        refused("another version's files", &module(path, "v1.0.1"), "is not in the folder"),
        refused(
            "another module's go.mod",
            &of(&[("go.mod", "module example.com/evil")]),
            "declares the module \"example.com/evil\"",
        ),
        refused("a go.mod without a name", &of(&[("go.mod", "go 1.19")]), "not example.com/bad"),
        refused("a module in a module", &of(&[("x/go.mod", "module x")]), "starts another module"),
        refused(
            "two files that differ in case",
            &of(&[("a.go", ""), ("A.go", "")]),
            "collide on file systems that ignore case",
        ),
        refused(
            "another spelling of go.mod",
            &of(&[("GO.MOD", "module example.com/bad")]),
            "must be spelled go.mod",
        ),
        refused("an entry for a folder", &of(&[("a.go", ""), ("x/", "")]), "pack only files"),
        refused("an invalid name", &of(&[("a?.go", "")]), "does not unpack"),
        get("none of them was published", "/example.com/bad/@v/list", 404),
    ]
}

fn checksum_database() -> Vec<Case> {
    vec![
        get("it is not served", "/sumdb/sum.golang.org/supported", 404)
            .code("not_found")
            .contains("GONOSUMDB"),
        get("look-ups are not served", "/sumdb/sum.golang.org/lookup/example.com/a@v1.0.0", 404)
            .code("not_found"),
        get("nor an invalid look-up", "/sumdb/sum.golang.org/lookup/x", 404).code("not_found"),
    ]
}
