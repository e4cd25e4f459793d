//! The format's protocol as a table of requests and expected responses.
//!
//! `protocol.rs` runs the table with the native plugin and the memory host. The workspace's tests
//! include this file, and run the table with the WebAssembly component in the runtime. Times differ
//! between the two runs, so no row depends on a time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

#[path = "a_crate.rs"]
#[allow(dead_code, reason = "each user of the module needs a part of it")]
pub(crate) mod a_crate;

use a_crate::{ACrate, framed, gzip};
use packhouse_testkit::{Case, tar_archive};
use serde_json::json;

const NEW: &str = "/api/v1/crates/new";

/// The cases for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        publishing(),
        refused_bodies(),
        refused_files(),
        refused_metadata(),
        names(),
        yanking(),
        searching(),
        owners(),
    ]
    .concat()
}

/// The cases for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let hello = ACrate::new("hello", "1.0.0");
    let other = hello.clone().file(gzip(&tar_archive(
        &[("hello-1.0.0/Cargo.toml", b'0', b"package = { name = \"hello\", version = \"1.0.0\" }")],
        1024,
    )));
    vec![
        published("first", &hello),
        published("the same bytes again", &hello),
        put("other bytes", 409, &other).code("version_already_exists"),
    ]
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn put(name: &str, status: u16, sent: &ACrate) -> Case {
    Case::new(name, "PUT", NEW, status).body(sent.body())
}

fn published(name: &str, sent: &ACrate) -> Case {
    put(name, 200, sent).contains("\"warnings\":{\"invalid_badges\":[]").lacks("errors")
}

fn refused(name: &str, sent: &ACrate, words: &str) -> Case {
    put(name, 400, sent).code("invalid_crate").contains(words)
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("the addresses of the registry", "/config.json", 200)
            .header("content-type", "application/json")
            .contains("\"dl\":\"https://packhouse.test/repositories/releases/api/v1/crates\"")
            .contains("\"api\":\"https://packhouse.test/repositories/releases\"")
            .contains("\"auth-required\":true"),
        get("no page", "/he/ll/hello", 404).code("not_found").contains("no crate hello"),
        get("no file", "/api/v1/crates/hello/1.0.0/download", 404).code("not_found"),
        get("no owners", "/api/v1/crates/hello/owners", 404).code("not_found"),
        get("nothing found", "/api/v1/crates?q=hello", 200).content("{\"crates\":[],\"meta\":{\"total\":0}}"),
        Case::new("nothing to yank", "DELETE", "/api/v1/crates/hello/1.0.0/yank", 404).code("not_found"),
        get("a path outside the protocol", "/hello", 404).code("not_found"),
    ]
}

fn publishing() -> Vec<Case> {
    let (hello, newer) = (ACrate::new("hello", "1.0.0"), ACrate::new("hello", "1.1.0+build.5"));
    let newer = newer.with(json!({
        "features": {"a": ["dep:other"]},
        "deps": [{"name": "other", "version_req": "^1", "features": [], "optional": true, "default_features": true,
                  "target": null, "kind": "normal", "registry": null, "explicit_name_in_toml": null}],
    }));
    let again = ACrate::new("hello", "1.1.0+build.6");
    vec![
        published("a first version", &hello),
        get("its line", "/he/ll/hello", 200)
            .header("content-type", "text/plain; charset=utf-8")
            .header("cache-control", "no-cache")
            .contains("{\"name\":\"hello\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"")
            .contains("\"features\":{},\"yanked\":false,\"links\":null,\"v\":1,\"pubtime\":\"20"),
        get("its file", "/api/v1/crates/hello/1.0.0/download", 200)
            .content(&hello.file)
            .header("content-type", "application/gzip")
            .header("cache-control", "private, max-age=31536000, immutable"),
        put("the same version again", 409, &hello).code("version_already_exists").contains("already uploaded"),
        published("a version with build metadata", &newer),
        get("both lines", "/he/ll/hello", 200)
            .contains("\"vers\":\"1.0.0\"")
            .contains("\"vers\":\"1.1.0+build.5\"")
            .contains("\"features\":{},\"yanked\":false,\"links\":null,\"v\":2,\"features2\":{\"a\":[\"dep:other\"]}")
            .contains("{\"name\":\"other\",\"req\":\"^1\",\"features\":[],\"optional\":true,"),
        get("its file, with a plus in the path", "/api/v1/crates/hello/1.1.0%2Bbuild.5/download", 200)
            .content(&newer.file),
        put("other build metadata do not make another version", 409, &again)
            .code("version_already_exists")
            .contains("1.1.0+build.5"),
        get("no file for the other build metadata", "/api/v1/crates/hello/1.1.0%2Bbuild.6/download", 404),
    ]
}

fn refused_bodies() -> Vec<Case> {
    let body = |name: &str, bytes: Vec<u8>| Case::new(name, "PUT", NEW, 400).body(bytes);
    let whole = ACrate::new("broken", "1.0.0").body();
    vec![
        body("an empty body", Vec::new()).code("invalid_request").contains("stated lengths do not match"),
        body("a truncated body", whole[..whole.len() - 1].to_vec()).code("invalid_request"),
        body("bytes after the end", [&whole[..], b"x"].concat()).code("invalid_request"),
        body("malformed metadata", framed(b"x", b""))
            .code("invalid_crate")
            .contains("do not have the form that cargo sends"),
        body("no name", framed(b"{}", b"")).code("invalid_crate").contains("name"),
        Case::new("metadata over the limit", "PUT", NEW, 413)
            .body(u32::MAX.to_le_bytes())
            .code("file_too_large"),
        get("none of them was published", "/br/ok/broken", 404),
    ]
}

fn refused_files() -> Vec<Case> {
    let manifest: &[u8] = b"[package]\nname = \"odd\"\nversion = \"1.0.0\"\n";
    let of =
        |entries: &[(&str, u8, &[u8])]| ACrate::new("odd", "1.0.0").file(gzip(&tar_archive(entries, 1024)));
    let toml = |text: &str| of(&[("odd-1.0.0/Cargo.toml", b'0', text.as_bytes())]);
    let own = ("odd-1.0.0/Cargo.toml", b'0', manifest);
    vec![
        refused("not gzip", &ACrate::new("odd", "1.0.0").file(b"odd".to_vec()), "not compressed with gzip"),
        refused("not tar", &ACrate::new("odd", "1.0.0").file(gzip(&[7; 2048])), "not a tar archive"),
        refused(
            "no manifest",
            &of(&[("odd-1.0.0/lib.rs", b'0', b"")]),
            "does not contain odd-1.0.0/Cargo.toml",
        ),
        refused(
            "the folder of another crate",
            &of(&[own, ("evil-1.0.0/x", b'0', b"")]),
            "which is not in odd-1.0.0/",
        ),
        refused("a path out of the folder", &of(&[own, ("odd-1.0.0/../../x", b'0', b"")]), "which is not in"),
        refused("a link", &of(&[own, ("odd-1.0.0/x", b'2', b"")]), "neither a file nor a folder"),
        refused("two manifests", &of(&[own, own]), "must be a single file"),
        refused("a manifest without a package", &toml("[workspace]"), "has no valid name and version"),
        refused(
            "the manifest of another crate",
            &toml("[package]\nname = \"evil\"\nversion = \"1.0.0\""),
            "for evil 1.0.0",
        ),
        refused(
            "the manifest of another version",
            &toml("[package]\nname = \"odd\"\nversion = \"2.0.0\""),
            "for odd 2.0.0",
        ),
        get("none of them was published", "/3/o/odd", 404),
    ]
}

fn refused_metadata() -> Vec<Case> {
    let with = |members| ACrate::new("odd", "1.0.0").with(members);
    let dep = |name: &str, req: &str, kind: &str| {
        with(json!({"deps": [{"name": name, "version_req": req, "kind": kind}]}))
    };
    vec![
        refused("an invalid name", &with(json!({"name": "o/d"})), "is not a crate name"),
        refused("a name that is too long", &with(json!({"name": "o".repeat(65)})), "is not a crate name"),
        refused("an invalid version", &with(json!({"vers": "1"})), "is not a version"),
        refused("a dependency without a name", &dep("", "^1", "normal"), "the name of the dependency"),
        refused("an invalid requirement", &dep("a", "one", "normal"), "the version of the dependency"),
        refused("an invalid kind", &dep("a", "^1", "odd"), "the kind of the dependency"),
    ]
}

fn names() -> Vec<Case> {
    vec![
        published("a name in the spelling of its author", &ACrate::new("Two_Words", "1.0.0")),
        get("its page is in lower case", "/tw/o_/two_words", 200).contains("\"name\":\"Two_Words\""),
        get("not at a path with capital letters", "/Tw/o_/Two_Words", 404),
        get("not in other folders", "/xx/o_/two_words", 404),
        get("another spelling has no page", "/tw/o-/two-words", 404),
        put("another spelling is not another crate", 409, &ACrate::new("two-words", "2.0.0"))
            .code("conflict")
            .contains("called Two_Words here"),
        get("its file", "/api/v1/crates/Two_Words/1.0.0/download", 200),
        published("a name of three letters", &ACrate::new("abc", "1.0.0")),
        get("has a page", "/3/a/abc", 200),
        published("a name of one letter", &ACrate::new("z", "1.0.0")),
        get("has a page too", "/1/z", 200),
    ]
}

fn yanking() -> Vec<Case> {
    let (yank, unyank) = ("/api/v1/crates/hello/1.0.0/yank", "/api/v1/crates/hello/1.0.0/unyank");
    vec![
        Case::new("yank", "DELETE", yank, 200).content("{\"ok\":true}"),
        Case::new("yank again", "DELETE", yank, 200).content("{\"ok\":true}"),
        get("its line is yanked", "/he/ll/hello", 200).contains("\"yanked\":true"),
        get("its file is still there", "/api/v1/crates/hello/1.0.0/download", 200),
        Case::new("unyank", "PUT", unyank, 200).content("{\"ok\":true}"),
        get("its line is not yanked", "/he/ll/hello", 200).lacks("\"yanked\":true"),
        Case::new("no such version", "DELETE", "/api/v1/crates/hello/9.0.0/yank", 404).code("not_found"),
        Case::new("no such crate", "PUT", "/api/v1/crates/none/9.0.0/unyank", 404).code("not_found"),
    ]
}

fn searching() -> Vec<Case> {
    vec![
        get("too few results per page", "/api/v1/crates?q=hello&per_page=0", 400).code("invalid_request"),
        get("too many results per page", "/api/v1/crates?q=hello&per_page=101", 400).code("invalid_request"),
    ]
}

fn owners() -> Vec<Case> {
    let at = "/api/v1/crates/hello/owners";
    vec![
        get("publishes without a caller have no owner", at, 200).content("{\"users\":[]}"),
        Case::new("an owner cannot be added", "PUT", at, 403)
            .code("forbidden")
            .contains("members and their permissions"),
        Case::new("an owner cannot be removed", "DELETE", at, 403).code("forbidden"),
    ]
}
