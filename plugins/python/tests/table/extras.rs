//! Uploads with attestations, project status, PyPI's own JSON documents, deletions.

use super::{JSON, demo, form, get, sha256, upload, wheel};
use packhouse_testkit::Case;

/// Builds the form's `attestations` for this file. Their certificate and signature are not real.
fn attestation(filename: &str, hash: &str) -> String {
    use base64::Engine as _;
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let statement = format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"{filename}","digest":{{"sha256":"{hash}"}}}}],"predicateType":"https://docs.pypi.org/attestations/publish/v1","predicate":null}}"#
    );
    format!(
        r#"[{{"version":1,"verification_material":{{"certificate":"{}","transparency_entries":[{{}}]}},"envelope":{{"statement":"{}","signature":"{}"}}}}]"#,
        encoded("certificate"),
        encoded(&statement),
        encoded("signature")
    )
}

pub(super) fn attestations() -> Vec<Case> {
    let file = wheel::wheel("attested", "1.0", "");
    let name = "attested-1.0-py3-none-any.whl";
    let good = attestation(name, &sha256(&file));
    let sent = |case: &str, attestations: &str, status| {
        upload(case, "attested", "1.0", &wheel::wheel("attested", "1.0", ""), status).part(
            "attestations",
            None,
            attestations,
        )
    };
    let refused = |case: &str, attestations: &str| sent(case, attestations, 400).code("invalid_attestations");
    let kind = "application/vnd.pypi.integrity.v1+json";
    vec![
        refused("of another file", &attestation("other-1.0-py3-none-any.whl", &sha256(&file))),
        refused("of other bytes", &attestation(name, &sha256(b""))),
        refused("an empty list", "[]"),
        refused("no list", "{}"),
        refused("under another version", &good.replace(r#""version":1"#, r#""version":2"#)),
        refused("without a signature", &good.replace("signature", "other")),
        sent("of this very file", &good, 200),
        get("its provenance", "/integrity/attested/1.0/attested-1.0-py3-none-any.whl/provenance", 200)
            .header("content-type", kind)
            .contains("attestation_bundles")
            .contains("transparency_entries"),
        get("provenance beside the file", &format!("/packages/attested/1.0/{name}.provenance"), 200)
            .header("content-type", kind),
        get("the JSON page has its URL", "/simple/attested/", 200)
            .with("accept", JSON)
            .contains(r#""provenance":"http"#)
            .contains(&format!(r#"/integrity/attested/1.0/{name}/provenance""#)),
        get("the HTML page has its URL", "/simple/attested/", 200)
            .contains(r#"data-provenance="http"#)
            .contains(&format!(r#"/integrity/attested/1.0/{name}/provenance""#)),
        get("no provenance", "/integrity/demo-project/1.0/demo_project-1.0.tar.gz/provenance", 404),
    ]
}

pub(super) fn status() -> Vec<Case> {
    let path = "/projects/state/status";
    let put = |case: &str, body: &str, status| Case::new(case, "PUT", path, status).body(body);
    let next = |case: &str, version: &str, status| {
        upload(case, "state", version, &wheel::wheel("state", version, ""), status)
    };
    vec![
        put("an unknown project", r#"{"status":"archived"}"#, 404),
        next("a project", "1.0", 200),
        get("active", path, 200).content(r#"{"status":"active"}"#),
        put("deprecated", r#"{"status":"deprecated","reason":"use <other>"}"#, 200),
        get("the JSON page has the status", "/simple/state/", 200)
            .with("accept", JSON)
            .contains(r#""project-status":{"reason":"use <other>","status":"deprecated"}"#),
        get("in HTML too", "/simple/state/", 200)
            .contains("<meta name=\"pypi:project-status\" content=\"deprecated\">")
            .contains("<meta name=\"pypi:project-status-reason\" content=\"use &lt;other&gt;\">"),
        next("it still takes files", "1.1", 200),
        put("archived", r#"{"status":"archived"}"#, 200),
        next("no more files", "1.2", 403).contains("archived"),
        put("quarantined", r#"{"status":"quarantined"}"#, 200),
        get("no files are offered", "/simple/state/", 200).with("accept", JSON).contains(r#""files":[]"#),
        put("active again", r#"{"status":"active"}"#, 200),
        get("all files are offered", "/simple/state/", 200)
            .with("accept", JSON)
            .contains("state-1.1-py3-none-any.whl"),
        put("an unknown status", r#"{"status":"gone"}"#, 400),
        put("not JSON", "archived", 400),
    ]
}

pub(super) fn legacy() -> Vec<Case> {
    let file = demo();
    vec![
        get("a project", "/pypi/demo-project/json", 200)
            .header("content-type", "application/json")
            .contains(r#""version":"1.10""#)
            .contains(r#""releases":{"1.0":["#)
            .contains(&format!(r#""sha256":"{}""#, sha256(&file))),
        get("a version", "/pypi/Demo.Project/1.0/json", 200)
            .contains(r#""summary":"About Demo.Project""#)
            .contains(r#""name":"demo"#)
            .contains(r#""project_urls":{"Home":"https://example.org"}"#)
            .contains(r#""python_version":"py3""#)
            .contains(r#""python_version":"source""#)
            .contains(r#""requires_python":">=3.8""#),
        get("an equal version", "/pypi/demo-project/1.0.0/json", 200).contains(r#""version":"1.0""#),
        get("no version", "/pypi/demo-project/9/json", 404),
        get("no project", "/pypi/absent/json", 404),
    ]
}

pub(super) fn deletions() -> Vec<Case> {
    let file = wheel::wheel("going", "1.0", "");
    let at = "/packages/going/1.0/going-1.0-py3-none-any.whl";
    vec![
        upload("a file", "going", "1.0", &file, 200),
        form("and its source", "going", "1.0", "going-1.0.tar.gz", &wheel::sdist("going", "1.0"), 200),
        Case::new("a companion of the file", "DELETE", &format!("{at}.metadata"), 400),
        Case::new("under another version", "DELETE", "/packages/going/1.1/going-1.0.tar.gz", 404),
        Case::new("the file", "DELETE", at, 204),
        Case::new("the file again", "DELETE", at, 404),
        get("it is gone", at, 404),
        get("the source is left", "/simple/going/", 200)
            .with("accept", JSON)
            .contains(r#""versions":["1.0"]"#),
        upload("its name is reserved", "going", "1.0", &file, 409)
            .code("version_already_exists")
            .contains("deleted"),
        Case::new("the source", "DELETE", "/packages/going/1.0/going-1.0.tar.gz", 204),
        get("the project is gone", "/simple/going/", 404),
        get("it is gone from the list", "/simple/", 200).with("accept", JSON).lacks("going"),
        upload("its name stays reserved", "going", "1.0", &file, 409),
        upload("another version", "going", "1.1", &wheel::wheel("going", "1.1", ""), 200),
    ]
}
