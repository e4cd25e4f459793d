//! The protocol of Composer's repositories as a table of requests and expected responses.
//!
//! `protocol.rs` runs the table with the native plugin and the memory host. The workspace's tests
//! include this file, and run the table with the WebAssembly component in the runtime. All rows run
//! in one repository, in this order.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::zip::{package, sha1, zip};
use packhouse_testkit::Case;

/// The rows for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_published(), uploads(), metadata(), files(), refused(), deletions()].concat()
}

/// The rows for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    vec![
        put("a package", "1.0", &package("acme/same", "1.0", ""), 201),
        put("the same bytes again", "1.0", &package("acme/same", "1.0", ""), 201),
        put("other bytes", "1.0.0", &package("acme/same", "1.1", ""), 409).code("version_already_exists"),
    ]
}

/// The rows for a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let (first, second) = (package("acme/again", "1.0", ""), package("acme/again", "1.1", ""));
    vec![
        put("a package", "1.0", &first, 201),
        put("a version that still exists", "1.0", &second, 409),
        Case::new("delete", "DELETE", "/packages/acme/again/1.0", 204),
        put("the same number again", "1.0", &second, 201),
        get("the other bytes", "/dists/acme/again/1.0.zip", 200).content(&second),
    ]
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn put(name: &str, version: &str, zip: &[u8], status: u16) -> Case {
    Case::new(name, "PUT", &format!("/?version={version}"), status).body(zip)
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("the address of the repository", "/", 200),
        get("the root", "/packages.json", 200)
            .header("content-type", "application/json")
            .contains("/p2/%package%.json\"")
            .contains(r#""available-packages":[]"#)
            .contains(r#""packages":[]"#),
        get("an unknown package", "/p2/acme/demo.json", 404).code("not_found"),
        get("an unknown file", "/dists/acme/demo/1.0.zip", 404).code("not_found"),
        get("an empty list", "/packages/list.json", 200).content(r#"{"packageNames":[]}"#),
        get("an unknown path", "/nothing/at/all", 404),
        Case::new("an audit", "POST", "/security-advisories", 200)
            .body("packages%5B0%5D=acme%2Fdemo")
            .content(r#"{"advisories":{}}"#),
        Case::new("an audit without packages", "POST", "/security-advisories", 400).code("invalid_request"),
        Case::new("a report of installed packages", "POST", "/downloads", 200).body(r#"{"downloads": []}"#),
        Case::new("a method that is not allowed", "PUT", "/packages.json", 405).header("allow", "GET, HEAD"),
    ]
}

fn uploads() -> Vec<Case> {
    let more = r#", "version": "2.0.0", "require": {"php": ">=7", "acme/lib": "^1"}, "scripts": {"x": "y"}"#;
    vec![
        put("a zip with its version in the query", "1.9.0", &package("acme/demo", "1.9.0", ""), 201)
            .content(r#"{"name":"acme/demo","version":"1.9.0"}"#),
        Case::new("a zip with its version in composer.json", "POST", "/", 201).body(package(
            "acme/demo",
            "2.0.0",
            more,
        )),
        Case::new("a zip in a form", "POST", "/", 201)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("version", None, "1.10.0")
            .part("package", Some("demo.zip"), package("acme/demo", "1.10.0", "")),
        Case::new("a zip at the path of its version", "PUT", "/packages/upload/acme/demo/2.1.0-beta1", 201)
            .body(package("acme/demo", "2.1.0-beta1", "")),
        Case::new("a zip under its file name, as curl sends it", "PUT", "/demo.zip?version=0.1", 201)
            .body(package("acme/demo", "0.1", "")),
        Case::new("a file name that does not end with .zip", "PUT", "/demo.txt?version=0.1", 404),
        put("a branch", "dev-main", &package("acme/demo", "dev-main", ""), 201),
        put("a new state of the branch", "dev-main", &package("acme/demo", "dev-moved", ""), 201),
        put("a numeric branch", "1.x-dev", &package("acme/demo", "1.x-dev", ""), 201),
        put("a branch with a slash", "dev-feature/a", &package("acme/demo", "dev-a", ""), 201),
        put("another package", "v1.0", &package("acme/lib", "1.0", ""), 201),
        put("the same version again", "1.9.0", &package("acme/demo", "1.9.0", ""), 409)
            .code("version_already_exists"),
        put("the same version in another spelling", "v1.9", &package("acme/demo", "1.9.0", ""), 409)
            .code("version_already_exists"),
    ]
}

fn metadata() -> Vec<Case> {
    let sum = format!(r#""shasum":"{}""#, sha1(&package("acme/demo", "1.9.0", "")));
    vec![
        get("versions", "/p2/acme/demo.json", 200)
            .contains(r#"{"minified":"composer/2.0","packages":{"acme/demo":[{"#)
            .contains(r#""version":"2.1.0-beta1""#)
            .contains(r#""require":{"acme/lib":"^1","php":">=7"}"#)
            .contains(r#""require":"__unset""#)
            .contains(&sum)
            .contains("/dists/acme/demo/1.9.0.zip\"")
            .lacks("scripts")
            .lacks("dev-main"),
        get("branches", "/p2/acme/demo~dev.json", 200)
            .contains(r#""version":"dev-main""#)
            .contains(r#""version":"1.x-dev""#)
            .contains("/dists/acme/demo/dev-feature/a.zip?reference=")
            .lacks("1.9.0"),
        get("an empty list of branches", "/p2/acme/lib~dev.json", 200)
            .content(r#"{"minified":"composer/2.0","packages":{"acme/lib":[]}}"#),
        get("the root with packages", "/packages.json", 200)
            .contains(r#""available-packages":["acme/demo","acme/lib"]"#),
        get("a filtered list", "/packages/list.json?filter=*/l*", 200)
            .content(r#"{"packageNames":["acme/lib"]}"#),
        get("a search", "/search.json?q=demo", 200).contains(r#""name":"acme/demo""#),
        get("a name in upper case", "/p2/Acme/demo.json", 404),
    ]
}

fn files() -> Vec<Case> {
    vec![
        get("a file", "/dists/acme/demo/1.9.0.zip", 200)
            .content(package("acme/demo", "1.9.0", ""))
            .header("content-type", "application/zip")
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("the file of a branch", "/dists/acme/demo/dev-main.zip", 200)
            .content(package("acme/demo", "dev-moved", ""))
            .header("cache-control", "no-cache"),
        get("the file of another state of the branch", "/dists/acme/demo/dev-main.zip?reference=0", 404),
        get("the file of a branch with a slash", "/dists/acme/demo/dev-feature/a.zip", 200),
        get("another spelling of the version", "/dists/acme/demo/v1.9.zip", 404),
        get("another archive type", "/dists/acme/demo/1.9.0.tar", 404),
        get("an invalid version", "/dists/acme/demo/x", 404),
    ]
}

fn refused() -> Vec<Case> {
    let demo = package("acme/bad", "1.0", "");
    let json = br#"{"name": "acme/bad"}"#;
    let mut damaged = demo.clone();
    damaged[60] ^= 1;
    vec![
        put("an empty body", "1.0", b"", 400).code("invalid_package"),
        put("not a zip", "1.0", b"nonsense", 400).code("invalid_package"),
        put("a damaged zip", "1.0", &damaged, 400).code("invalid_package"),
        put("no composer.json", "1.0", &zip(&[("a/b/composer.json", json)]), 400).code("invalid_package"),
        put("two composer.json", "1.0", &zip(&[("a/composer.json", json), ("b/composer.json", json)]), 400)
            .code("invalid_package"),
        put("a path out of the archive", "1.0", &zip(&[("composer.json", json), ("../x", b"")]), 400)
            .code("invalid_package"),
        put(
            "a composer.json that is too large",
            "1.0",
            &zip(&[("composer.json", &vec![b' '; 600 << 10])]),
            400,
        )
        .code("invalid_package"),
        put("a composer.json that is not JSON", "1.0", &zip(&[("composer.json", b"{")]), 400)
            .code("invalid_package"),
        put("a composer.json without a name", "1.0", &zip(&[("composer.json", b"{}")]), 400)
            .code("invalid_package"),
        put("a package without a version", "", &demo, 400).code("invalid_package"),
        put("an invalid version", "latest", &demo, 400).code("invalid_package"),
        put(
            "a different version in composer.json",
            "1.0",
            &package("acme/bad", "1.0", r#", "version": "2.0""#),
            400,
        )
        .code("invalid_package"),
        Case::new("a different name in composer.json", "PUT", "/packages/upload/acme/other/1.0", 400)
            .code("invalid_package")
            .body(&demo),
        Case::new("a form without a file", "POST", "/", 400)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("version", None, "1.0"),
        get("none of them was stored", "/p2/acme/bad.json", 404),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("delete a branch with a slash", "DELETE", "/packages/acme/demo/dev-feature/a", 204),
        Case::new("delete a version", "DELETE", "/packages/acme/lib/1.0.0", 204),
        Case::new("delete it again", "DELETE", "/packages/acme/lib/1.0.0", 404).code("not_found"),
        Case::new("delete an invalid version", "DELETE", "/packages/acme/lib/latest", 404).code("not_found"),
        get("it no longer exists", "/p2/acme/lib.json", 404),
        get("its file no longer exists", "/dists/acme/lib/v1.0.zip", 404),
        put("the number of a deleted version", "1.0", &package("acme/lib", "1.0", ""), 409)
            .code("version_already_exists"),
    ]
}
