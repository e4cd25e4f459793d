//! The GOPROXY protocol as a table: what the go command asks, and what must come back.
//!
//! It runs natively over the memory host (`protocol.rs`), and through the component and the runtime (the workspace's tests
//! include this file). Times differ between the two, so that no row depends on one but that of a pseudo-version.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests, a fault is to be loud")]

use super::wheel;
use packhouse_testkit::Case;

/// All parts, for a repository with the settings that it has if nothing is said, in which nothing is published.
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

/// For a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let (path, zip) = ("/example.com/a/@v/v1.0.0.zip", module("example.com/a", "v1.0.0"));
    vec![
        put("first", path, 201, &zip),
        put("the same again", path, 201, &zip),
        put("other bytes", path, 409, &packed("example.com/a", "v1.0.0", &[("x.go", "package x")]))
            .code("version_already_exists"),
        Case::new("the first bytes stand", "GET", path, 200).content(&zip),
    ]
}

/// The zip of a module with a `go.mod`, a file and a README.
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
        get("nothing of the protocol", "/example.com/a", 404).contains("a module proxy has"),
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
        get("one is made up", "/example.com/old/@v/v0.1.0.mod", 200).content("module example.com/old\n"),
    ]
}

fn versions() -> Vec<Case> {
    let pseudo = "v1.10.1-0.20261121050140-abcdefabcdef";
    vec![
        published("example.com/a", "v1.10.0"),
        published("example.com/a", "v1.9.0"),
        published("example.com/a", "v1.11.0-rc.1"),
        published("example.com/a", pseudo),
        get("in their order, without those of commits", "/example.com/a/@v/list", 200)
            .content("v1.0.0\nv1.9.0\nv1.10.0\nv1.11.0-rc.1\n"),
        get("the latest is a release", "/example.com/a/@latest", 200).contains("\"Version\":\"v1.10.0\""),
        get("a commit tells its time", &format!("/example.com/a/@v/{pseudo}.info"), 200)
            .content(format!("{{\"Version\":\"{pseudo}\",\"Time\":\"2026-11-21T05:01:40Z\"}}")),
        published("example.com/commits", "v0.0.0-20261121050140-abcdefabcdef"),
        get("of commits alone none is listed", "/example.com/commits/@v/list", 200).content(""),
        get("but one is the latest", "/example.com/commits/@latest", 200)
            .contains("v0.0.0-20261121050140-abcdefabcdef"),
    ]
}

fn major_versions() -> Vec<Case> {
    let old = packed("example.com/a", "v2.0.0+incompatible", &[("a.go", "package a")]);
    let new = module("example.com/a", "v3.0.0+incompatible");
    vec![
        published("example.com/a/v2", "v2.0.0"),
        get("a module of its own", "/example.com/a/v2/@v/list", 200).content("v2.0.0\n"),
        put(
            "not below the old path",
            "/example.com/a/@v/v2.0.0.zip",
            400,
            &module("example.com/a", "v2.0.0"),
        )
        .code("invalid_version")
        .contains("ends with the major version"),
        put("nor below another", "/example.com/a/v3/@v/v2.0.0.zip", 400, b"x").code("invalid_version"),
        put("what came before modules", "/example.com/a/@v/v2.0.0+incompatible.zip", 201, &old),
        get("has its zip", "/example.com/a/@v/v2.0.0+incompatible.zip", 200).content(&old),
        put("a module is not that", "/example.com/a/@v/v3.0.0+incompatible.zip", 400, &new)
            .code("invalid_module")
            .contains("not +incompatible"),
        published("gopkg.in/a.v1", "v1.0.0"),
        put("another major version there", "/gopkg.in/a.v1/@v/v2.0.0.zip", 400, b"x").code("invalid_version"),
    ]
}

fn capitals() -> Vec<Case> {
    let zip = module("example.com/Burnt/Toml", "v1.0.0-RC1");
    vec![
        put("capitals are escaped", "/example.com/!burnt/!toml/@v/v1.0.0-!r!c1.zip", 201, &zip),
        get("everywhere", "/example.com/!burnt/!toml/@v/list", 200).content("v1.0.0-RC1\n"),
        get("in versions too", "/example.com/!burnt/!toml/@v/v1.0.0-!r!c1.info", 200)
            .contains("\"v1.0.0-RC1\""),
        get("and never plain", "/example.com/Burnt/Toml/@v/list", 404).code("not_found"),
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
        put("a plain capital", "/example.com/A/@v/v1.0.0.zip"),
        Case::new("nothing is deleted by clients", "DELETE", "/example.com/a/@v/v1.0.0.zip", 405)
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
        refused("no zip", b"not a zip", "no zip archive"),
        refused("nothing in it", &of(&[]), "holds no file"),
        refused(
            "another's",
            &module("example.com/evil", "v1.0.0"),
            "does not lie in example.com/bad@v1.0.0/",
        ),
        refused("another version's", &module(path, "v1.0.1"), "does not lie in"),
        refused(
            "another's go.mod",
            &of(&[("go.mod", "module example.com/evil")]),
            "that of the module \"example.com/evil\"",
        ),
        refused("a go.mod without a name", &of(&[("go.mod", "go 1.19")]), "not of example.com/bad"),
        refused("a module in a module", &of(&[("x/go.mod", "module x")]), "begins another module"),
        refused("two files that are one", &of(&[("a.go", ""), ("A.go", "")]), "are one on many a disk"),
        refused(
            "another spelling of go.mod",
            &of(&[("GO.MOD", "module example.com/bad")]),
            "is not called go.mod",
        ),
        refused("an entry for a folder", &of(&[("a.go", ""), ("x/", "")]), "pack files alone"),
        refused("a name that is none", &of(&[("a?.go", "")]), "does not unpack"),
        get("nothing came of them", "/example.com/bad/@v/list", 404),
    ]
}

fn checksum_database() -> Vec<Case> {
    vec![
        get("none is passed through", "/sumdb/sum.golang.org/supported", 404)
            .code("not_found")
            .contains("GONOSUMDB"),
        get("nor asked", "/sumdb/sum.golang.org/lookup/example.com/a@v1.0.0", 404).code("not_found"),
        get("for nonsense neither", "/sumdb/sum.golang.org/lookup/x", 404).code("not_found"),
    ]
}
