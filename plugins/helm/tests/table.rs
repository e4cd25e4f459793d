//! The protocol of chart repositories as a table of requests and expected responses.
//!
//! `protocol.rs` runs the rows against the native code and the in-memory host. The workspace's
//! tests include this file, and run the same rows against the compiled component in the real
//! runtime. Times differ between the two runs, so no row depends on a time. All rows run in one
//! repository, in the order of [`cases`].

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::chart::{archive, chart, gzip, provenance, sha256};
use packhouse_testkit::Case;

/// The rows for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [nothing_published(), uploads(), index(), files(), signatures(), refused(), deletions()].concat()
}

/// The rows for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let file = chart("same", "1.0.0", "");
    let signature = provenance("same-1.0.0.tgz", &file);
    vec![
        raw("a chart", &file, 201),
        raw("the same bytes again", &file, 201),
        Case::new("the same chart with a signature", "POST", "/api/charts", 201)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("chart", Some("x.tgz"), &file)
            .part("prov", Some("x.tgz.prov"), &signature),
        get("the signature", "/charts/same-1.0.0.tgz.prov", 200).content(&signature),
        raw("other bytes", &chart("same", "1.0.0", "home: x\n"), 409).code("version_already_exists"),
    ]
}

/// The rows for a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let (first, second) = (chart("again", "1.0.0", ""), chart("again", "1.0.0", "home: x\n"));
    vec![
        raw("a chart", &first, 201),
        raw("a version that still exists", &second, 409),
        Case::new("delete", "DELETE", "/api/charts/again/1.0.0", 200),
        raw("the same number again", &second, 201),
        get("the other bytes", "/charts/again-1.0.0.tgz", 200).content(&second),
    ]
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

/// Returns a case that publishes a chart as a body, like curl.
fn raw(name: &str, file: &[u8], status: u16) -> Case {
    Case::new(name, "POST", "/api/charts", status)
        .with("content-type", "application/x-www-form-urlencoded")
        .body(file)
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("the address of the repository", "/", 200).header("content-type", "text/plain; charset=utf-8"),
        get("an empty index", "/index.yaml", 200)
            .header("content-type", "application/x-yaml")
            .contains("apiVersion: v1\nentries: {}\ngenerated: \"1970-01-01T00:00:00Z\"\nserverInfo:\n  contextPath: \"/repositories/"),
        get("an empty list", "/api/charts", 200).content("{}"),
        get("an unknown chart", "/api/charts/demo", 404).code("not_found"),
        get("an unknown version", "/api/charts/demo/1.0.0", 404).code("not_found"),
        get("an unknown file", "/charts/demo-1.0.0.tgz", 404).code("not_found"),
        get("an unknown path", "/nothing/at/all", 404),
        Case::new("a method that is not allowed", "PATCH", "/index.yaml", 405).header("allow", "DELETE, GET, HEAD, PUT"),
    ]
}

fn uploads() -> Vec<Case> {
    let (first, second) = (chart("demo", "1.9.0", ""), chart("demo", "1.10.0", "appVersion: \"2.0\"\n"));
    vec![
        raw("a chart as a body", &first, 201).content(r#"{"saved":true}"#),
        Case::new("a chart as cm-push sends it", "POST", "/api/charts", 201)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("force", None, "false")
            .part("chart", Some("demo-1.10.0.tgz"), &second),
        Case::new("a chart at the path of its file", "PUT", "/demo-2.0.0-rc.1.tgz", 201).body(chart(
            "demo",
            "2.0.0-rc.1",
            "",
        )),
        Case::new("a chart below charts/", "PUT", "/charts/cert-manager-v1.2.3.tgz", 201).body(chart(
            "cert-manager",
            "v1.2.3",
            "",
        )),
        raw("the same version again", &first, 409).code("version_already_exists"),
        Case::new("force does not overwrite", "POST", "/api/charts?force", 409).body(chart(
            "demo",
            "1.9.0",
            "home: x\n",
        )),
        raw("a version with build metadata", &chart("demo", "1.9.0+build.1", ""), 201),
    ]
}

fn index() -> Vec<Case> {
    let digest = format!("digest: \"{}\"\n", sha256(&chart("demo", "1.9.0", "")));
    vec![
        get("the index", "/index.yaml", 200)
            .contains("entries:\n  cert-manager:\n  - apiVersion: \"v2\"\n    created: \"")
            .contains("  demo:\n  - apiVersion: \"v2\"\n")
            .contains("    urls:\n    - \"charts/demo-1.10.0.tgz\"\n    version: \"1.10.0\"\n")
            .contains("- \"charts/demo-1.9.0%2Bbuild.1.tgz\"\n")
            .contains(&digest)
            .contains("appVersion: \"2.0\"\n"),
        get("a chart", "/api/charts/demo", 200)
            .contains(r#""version":"1.10.0""#)
            .contains(r#""urls":["charts/demo-1.9.0.tgz"]"#),
        get("a version", "/api/charts/demo/1.9.0", 200).contains(r#""description":"About demo""#),
        get("a version that does not exist", "/api/charts/demo/3.0.0", 404).code("not_found"),
        get("all charts", "/api/charts", 200).contains(r#"{"cert-manager":[{"#),
    ]
}

fn files() -> Vec<Case> {
    let first = chart("demo", "1.9.0", "");
    vec![
        get("a file", "/charts/demo-1.9.0.tgz", 200)
            .content(&first)
            .header("content-type", "application/gzip")
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("a file without charts/", "/demo-1.9.0.tgz", 200).content(&first),
        get("a file name with a plus", "/charts/demo-1.9.0%2Bbuild.1.tgz", 200),
        get("the file of another version", "/charts/demo-1.9.1.tgz", 404).code("not_found"),
        get("not the file name of a chart", "/charts/demo.zip", 404),
        get("a signature that does not exist", "/charts/demo-1.9.0.tgz.prov", 404),
    ]
}

fn signatures() -> Vec<Case> {
    let (first, second) = (chart("demo", "1.9.0", ""), chart("demo", "1.10.0", "appVersion: \"2.0\"\n"));
    let signature = provenance("demo-1.9.0.tgz", &first);
    vec![
        Case::new("a signature as a body", "POST", "/api/prov", 201).body(&signature),
        Case::new("the same signature again", "POST", "/api/prov", 201).body(&signature),
        get("the signature", "/charts/demo-1.9.0.tgz.prov", 200).content(&signature),
        Case::new("a different signature", "POST", "/api/prov", 409).body(format!("{signature}\n")),
        Case::new("a signature at the path of its file", "PUT", "/charts/demo-1.10.0.tgz.prov", 201)
            .body(provenance("demo-1.10.0.tgz", &second)),
        Case::new("a signature of another file", "PUT", "/charts/demo-1.10.0.tgz.prov", 400)
            .code("invalid_provenance")
            .body(&signature),
        Case::new("a signature of other bytes", "POST", "/api/prov", 400)
            .code("invalid_provenance")
            .body(provenance("demo-2.0.0-rc.1.tgz", &first)),
        Case::new("a signature of an unknown chart", "POST", "/api/prov", 404)
            .body(provenance("absent-1.0.0.tgz", &first)),
        Case::new("not a signature", "POST", "/api/prov", 400).code("invalid_provenance").body("nonsense"),
        Case::new("a form with the signature of another chart", "POST", "/api/charts", 400)
            .code("invalid_provenance")
            .with("content-type", "multipart/form-data; boundary=x")
            .part("chart", Some("x.tgz"), chart("signed", "1.0.0", ""))
            .part("prov", Some("x.prov"), &signature),
    ]
}

fn refused() -> Vec<Case> {
    let bomb = gzip(&vec![0; 40 << 20]);
    let yaml = b"apiVersion: v2\nname: twice\nversion: 1.0.0\n";
    vec![
        raw("an empty body", b"", 400).code("invalid_chart"),
        raw("not gzip", b"nonsense", 400).code("invalid_chart"),
        raw("not tar", &gzip(b"nonsense"), 400).code("invalid_chart"),
        raw("a decompression bomb", &bomb, 400).code("invalid_chart"),
        raw("no Chart.yaml", &archive(&[("demo/values.yaml", b"{}")]), 400).code("invalid_chart"),
        raw("two Chart.yaml", &archive(&[("a/Chart.yaml", yaml), ("b/Chart.yaml", yaml)]), 400)
            .code("invalid_chart"),
        raw("a Chart.yaml that is too large", &archive(&[("a/Chart.yaml", &vec![b'#'; 300 << 10])]), 400)
            .code("invalid_chart"),
        raw("a name with path segments", &chart("../demo", "1.0.0", ""), 400).code("invalid_chart"),
        raw("an invalid version", &chart("demo", "latest", ""), 400).code("invalid_chart"),
        raw("not YAML", &archive(&[("a/Chart.yaml", b"{{{")]), 400).code("invalid_chart"),
        Case::new("a different name in the path", "PUT", "/other-1.0.0.tgz", 400)
            .code("invalid_chart")
            .body(chart("demo", "3.0.0", "")),
        Case::new("not the file name of a chart", "PUT", "/demo.tgz", 400)
            .code("invalid_request")
            .body(chart("demo", "3.0.0", "")),
        Case::new("a form without a chart", "POST", "/api/charts", 400)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("force", None, "x"),
        Case::new("a form with two charts", "POST", "/api/charts", 400)
            .with("content-type", "multipart/form-data; boundary=x")
            .part("chart", Some("a.tgz"), chart("demo", "3.0.0", ""))
            .part("chart", Some("b.tgz"), chart("demo", "3.0.1", "")),
        get("none of them was stored", "/api/charts/demo/3.0.0", 404),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        Case::new("delete a version", "DELETE", "/api/charts/demo/1.9.0", 200).content(r#"{"deleted":true}"#),
        Case::new("delete it again", "DELETE", "/api/charts/demo/1.9.0", 404).code("not_found"),
        get("its file no longer exists", "/charts/demo-1.9.0.tgz", 404),
        get("its signature no longer exists", "/charts/demo-1.9.0.tgz.prov", 404),
        raw("the number of a deleted version", &chart("demo", "1.9.0", ""), 409)
            .code("version_already_exists"),
        Case::new("delete a file", "DELETE", "/charts/demo-1.10.0.tgz", 204),
        Case::new("delete only a signature", "DELETE", "/demo-1.10.0.tgz.prov", 400),
        get("the index without the deleted versions", "/index.yaml", 200)
            .lacks("1.10.0")
            .contains("2.0.0-rc.1"),
    ]
}
