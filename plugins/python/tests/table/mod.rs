//! The protocol of the Python index as a table of requests and expected responses.
//!
//! `protocol.rs` runs the rows against the native code and the in-memory host. The workspace's
//! tests include this file, and run the same rows against the compiled component in the real
//! runtime. Times differ between the two runs, so no row depends on a time. All rows run in one
//! repository, in the order of [`cases`]. Some rows need the uploads of earlier rows.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

mod extras;
mod moved;
mod refused;

use super::wheel;
use extras::{attestations, deletions, legacy, status};
use moved::{moved_files, moved_wheels};
use packhouse_testkit::Case;
use refused::{refused_digests, refused_forms, refused_names, refused_sources, refused_wheels, refused_zips};
use sha2::{Digest as _, Sha256};

const JSON: &str = "application/vnd.pypi.simple.v1+json";
const HTML: &str = "application/vnd.pypi.simple.v1+html";
/// The `Accept` header of pip.
const PIP: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";

/// All cases, for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        twine_uploads(),
        pages(),
        negotiation(),
        redirects(),
        files(),
        refused_forms(),
        refused_names(),
        refused_wheels(),
        refused_digests(),
        refused_zips(),
        refused_sources(),
        moved_wheels(),
        moved_files(),
        attestations(),
        status(),
        legacy(),
        deletions(),
    ]
    .concat()
}

/// Cases for a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let file = wheel::wheel("same", "1.0", "");
    vec![
        upload("first", "same", "1.0", &file, 200),
        upload("the same bytes again", "same", "1.0", &file, 200),
        upload("other bytes", "same", "1.0", &wheel::wheel("same", "1.0", "Author: me\n"), 409)
            .code("version_already_exists"),
    ]
}

/// Cases for a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let address = "/packages/again/1.0/again-1.0-py3-none-any.whl";
    let (first, second) = (wheel::wheel("again", "1.0", ""), wheel::wheel("again", "1.0", "Author: me\n"));
    vec![
        upload("first", "again", "1.0", &first, 200),
        upload("while it exists", "again", "1.0", &second, 409),
        Case::new("deleted", "DELETE", address, 204),
        upload("its name is used again", "again", "1.0", &second, 200),
        Case::new("the new bytes are served", "GET", address, 200).content(&second),
    ]
}

/// Returns a case that sends the upload form like twine, with this file name.
fn form(name: &str, project: &str, version: &str, filename: &str, file: &[u8], status: u16) -> Case {
    let filetype = if filename.ends_with(".whl") { "bdist_wheel" } else { "sdist" };
    Case::new(name, "POST", "/", status)
        .part(":action", None, "file_upload")
        .part("protocol_version", None, "1")
        .part("name", None, project)
        .part("version", None, version)
        .part("filetype", None, filetype)
        .part("metadata_version", None, "2.1")
        .part("requires_dist", None, "a")
        .part("requires_dist", None, "b")
        .part("content", Some(filename), file)
}

/// Returns a case that uploads a wheel of this project and version.
fn upload(name: &str, project: &str, version: &str, file: &[u8], status: u16) -> Case {
    form(name, project, version, &wheel::wheel_name(project, version), file, status)
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn demo() -> Vec<u8> {
    wheel::wheel(
        "Demo.Project",
        "1.0",
        "Requires-Python: >=3.8\nProject-URL: Home, https://example.org\n\nLong <b>text</b>\n",
    )
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("the root page", "/", 200).header("content-type", "text/html; charset=utf-8"),
        get("an empty list", "/simple/", 200)
            .with("accept", JSON)
            .content(r#"{"meta":{"api-version":"1.4"},"projects":[]}"#),
        get("no project", "/simple/demo-project/", 404).code("not_found"),
        get("no file", "/packages/demo/1.0/demo-1.0.tar.gz", 404).code("not_found"),
        get("no legacy document", "/pypi/demo/json", 404).code("not_found"),
        Case::new("an upload to the index", "POST", "/simple/", 405).header("allow", "GET, HEAD"),
        get("an unknown path", "/nothing", 404),
    ]
}

fn twine_uploads() -> Vec<Case> {
    let (file, source) = (demo(), wheel::sdist("demo.project", "1.0"));
    let name = "demo_project-1.0-py3-none-any.whl";
    vec![
        form("a wheel with its digests", "Demo.Project", "1.0", name, &file, 200)
            .part("sha256_digest", None, sha256(&file))
            .part("blake2_256_digest", None, ""),
        form("its source", "demo-project", "1.0", "demo_project-1.0.tar.gz", &source, 200).part(
            "gpg_signature",
            Some("demo_project-1.0.tar.gz.asc"),
            "-----BEGIN PGP SIGNATURE-----",
        ),
        form("the same again", "Demo.Project", "1.0", name, &file, 409)
            .code("version_already_exists")
            .contains("File already exists")
            .contains("publish a new version"),
        form(
            "under another spelling",
            "demo_project",
            "1.0.0",
            "Demo.Project-1.0.0-py3-none-any.whl",
            &file,
            409,
        )
        .code("version_already_exists"),
        form(
            "a wheel for another Python",
            "demo.project",
            "1.0",
            "demo_project-1.0-cp312-none-any.whl",
            &file,
            200,
        ),
        upload("a later version", "demo.project", "1.10", &wheel::wheel("demo.project", "1.10", ""), 200),
        upload(
            "a version between",
            "demo.project",
            "1.9rc1",
            &wheel::wheel("demo.project", "1.9rc1", ""),
            200,
        ),
    ]
}

fn pages() -> Vec<Case> {
    let file = demo();
    let metadata = wheel::wheel_files(
        "Demo.Project",
        "1.0",
        "Requires-Python: >=3.8\nProject-URL: Home, https://example.org\n\nLong <b>text</b>\n",
    );
    let metadata = &metadata.iter().find(|(name, _)| name.ends_with("METADATA")).unwrap().1;
    let (address, hash) =
        ("../../packages/demo-project/1.0/demo_project-1.0-py3-none-any.whl", sha256(&file));
    vec![
        get("the list", "/simple/", 200).with("accept", JSON).contains(r#"{"name":"demo-project"}"#),
        get("the list in HTML", "/simple/", 200).contains("<a href=\"demo-project/\">demo-project</a>"),
        get("a project in JSON", "/simple/demo-project/", 200)
            .with("accept", PIP)
            .header("content-type", JSON)
            .contains(r#""versions":["1.0","1.9rc1","1.10"]"#)
            .contains(&format!(r#""url":"{address}""#))
            .contains(&format!(r#""hashes":{{"sha256":"{hash}"}}"#))
            .contains(&format!(r#""size":{}"#, file.len()))
            .contains(r#""requires-python":">=3.8""#)
            .contains(&format!(r#""core-metadata":{{"sha256":"{}"}}"#, sha256(metadata)))
            .contains(r#""upload-time":"20"#)
            .contains(r#""yanked":false"#)
            .contains(r#""gpg-sig":true"#)
            .contains(r#""project-status":{"status":"active"}"#),
        get("a project in HTML", "/simple/demo-project/", 200)
            .with("accept", HTML)
            .header("content-type", HTML)
            .contains("<meta name=\"pypi:repository-version\" content=\"1.4\">")
            .contains(&format!("<a href=\"{address}#sha256={hash}\" data-requires-python=\"&gt;=3.8\""))
            .contains(&format!("data-core-metadata=\"sha256={}\"", sha256(metadata)))
            .contains("data-gpg-sig=\"true\">demo_project-1.0.tar.gz</a>"),
        get("its metadata", "/packages/demo-project/1.0/demo_project-1.0-py3-none-any.whl.metadata", 200)
            .content(metadata),
    ]
}

fn negotiation() -> Vec<Case> {
    vec![
        get("no Accept header", "/simple/demo-project/", 200)
            .header("content-type", "text/html; charset=utf-8"),
        get("any media type", "/simple/demo-project/", 200)
            .with("accept", "*/*")
            .header("content-type", "text/html; charset=utf-8"),
        get("the latest", "/simple/demo-project/", 200)
            .with("accept", "application/vnd.pypi.simple.latest+json")
            .header("content-type", JSON),
        get(
            "the query parameter",
            &format!("/simple/demo-project/?format={}", JSON.replace('+', "%2B")),
            200,
        )
        .with("accept", "text/html")
        .header("content-type", JSON),
        get("an unknown media type", "/simple/demo-project/", 406)
            .with("accept", "application/vnd.pypi.simple.v2+json")
            .code("not_acceptable"),
        get("an unknown media type for the list", "/simple/", 406)
            .with("accept", "image/png")
            .code("not_acceptable"),
    ]
}

fn redirects() -> Vec<Case> {
    vec![
        get("the list without its slash", "/simple", 301).header("location", "simple/"),
        get("a project without its slash", "/simple/demo-project", 301).header("location", "demo-project/"),
        get("without its slash and not normalized", "/simple/Demo_Project", 301)
            .header("location", "demo-project/"),
        get("not normalized", "/simple/Demo._Project/", 301).header("location", "../demo-project/"),
        get("an invalid name", "/simple/-x-/", 404).code("not_found"),
        get("a name that would break a header", "/simple/a%20b", 404).code("not_found"),
    ]
}

fn files() -> Vec<Case> {
    let at = |name: &str| format!("/packages/demo-project/1.0/{name}");
    vec![
        get("a wheel", &at("demo_project-1.0-py3-none-any.whl"), 200)
            .content(demo())
            .header("content-type", "application/zip")
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("a source", &at("demo_project-1.0.tar.gz"), 200).header("content-type", "application/gzip"),
        get("its signature", &at("demo_project-1.0.tar.gz.asc"), 200)
            .content("-----BEGIN PGP SIGNATURE-----")
            .header("content-type", "application/pgp-signature"),
        get("no signature", &at("demo_project-1.0-py3-none-any.whl.asc"), 404).code("not_found"),
        get("no provenance", &at("demo_project-1.0-py3-none-any.whl.provenance"), 404).code("not_found"),
        get("under another version", "/packages/demo-project/1.1/demo_project-1.0.tar.gz", 404),
        get("under another project", "/packages/demo/1.0/demo_project-1.0.tar.gz", 404),
        Case::new("HEAD", "HEAD", &at("demo_project-1.0.tar.gz"), 200).content(""),
    ]
}
