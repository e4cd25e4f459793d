//! Tests of the signatures that a proxy states to the host. It states each signature once, and only
//! about the bytes that it serves. The upstream is in memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use packhouse_maven::Maven;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::json;

const JAR: &str = "/org/a/lib/1.0/lib-1.0.jar";

fn proxy(host: &MemoryHost, judged: bool) -> Mount<Maven> {
    let settings = json!({"upstream": "https://upstream.test", "judged_by_provenance": judged});
    host.mount::<Maven>("central", "proxy", settings)
}

/// Serves a file from the upstream, without any checksum.
fn serve_upstream(host: &MemoryHost, path: &str, bytes: &[u8]) {
    for method in ["HEAD", "GET"] {
        host.answer_upstream(method, path, 200, &[], bytes);
    }
    for ending in ["sha1", "sha256", "md5"] {
        host.answer_upstream("GET", &format!("{path}.{ending}"), 404, &[], b"");
    }
}

#[test]
fn signatures_are_stated_once() {
    let host = MemoryHost::new();
    let central = proxy(&host, true);
    serve_upstream(&host, JAR, b"a jar");
    let stated = || host.statements("central").into_iter().map(|one| one.source).collect::<Vec<_>>();
    central.get(JAR).send().expect(200);
    assert!(stated().is_empty() && central.effects().records.is_empty());

    serve_upstream(&host, &format!("{JAR}.sigstore.json"), b"{}");
    serve_upstream(&host, &format!("{JAR}.asc"), b"signed");
    assert_eq!(central.get(JAR).send().expect(200).body, b"a jar");
    let path = JAR.trim_start_matches('/');
    assert_eq!(stated(), [format!("{path}.sigstore.json"), format!("{path}.asc")]);
    let one = host.statements("central").remove(0);
    assert_eq!((one.path.as_str(), one.subject.algorithm()), (path, "sha256"));
    // From then on, the proxy serves only these bytes.
    let last = host.fetches().into_iter().rfind(|one| one.show_as.is_some()).unwrap();
    assert_eq!(last.expect[0], one.subject);
    let revision = host.revision("central");
    for method in ["GET", "HEAD"] {
        central.request(method, JAR).send().expect(200);
    }
    assert_eq!((stated().len(), host.revision("central")), (2, revision));
    serve_upstream(&host, JAR, b"another jar");
    central.get(JAR).send().expect(502);

    // A signature does not need a signature itself.
    let before = host.fetches().len();
    central.get(&format!("{JAR}.asc")).send().expect(200);
    assert!(host.fetches()[before..].iter().all(|one| one.show_as.is_none()));
}

#[test]
fn a_refused_file_counts_as_missing_and_a_refused_checksum_is_not_needed() {
    let host = MemoryHost::new();
    let central = proxy(&host, false);
    serve_upstream(&host, JAR, b"a jar");
    for algorithm in ["sha256", "md5"] {
        host.answer_upstream("GET", &format!("{JAR}.{algorithm}"), 404, &[], b"");
    }
    for status in [401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", &format!("{JAR}.sha1"), status, &[], b"");
        assert_eq!(central.get(JAR).send().expect(200).body, b"a jar");
    }
    for status in [404, 410, 401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", JAR, status, &[], b"");
        central.get(JAR).send().expect(404);
    }
    host.answer_upstream("GET", JAR, 500, &[], b"");
    let failed = central.get(JAR).send().expect(502).text();
    assert!(failed.contains("status 500") && failed.contains(JAR.trim_start_matches('/')), "{failed}");
}

#[test]
fn neither_an_html_page_nor_a_signature_of_a_moving_snapshot_is_stated() {
    let host = MemoryHost::new();
    let central = proxy(&host, true);
    serve_upstream(&host, JAR, b"a jar");
    host.answer_upstream("GET", &format!("{JAR}.asc"), 200, &[("content-type", "text/html")], b"<html>");
    central.get(JAR).send().expect(200);
    assert!(host.statements("central").is_empty());
    let moving = "/org/a/lib/1.1-SNAPSHOT/lib-1.1-SNAPSHOT.jar";
    serve_upstream(&host, moving, b"a jar");
    serve_upstream(&host, &format!("{moving}.asc"), b"signed");
    central.get(moving).send().expect(200);
    assert!(host.statements("central").is_empty());
}

#[test]
fn signatures_are_not_requested_if_no_policy_judges_by_them() {
    let host = MemoryHost::new();
    let central = proxy(&host, false);
    serve_upstream(&host, JAR, b"a jar");
    serve_upstream(&host, &format!("{JAR}.asc"), b"signed");
    central.get(JAR).send().expect(200);
    assert!(host.fetched().iter().all(|target| !target.contains(".asc") && !target.contains("sigstore")));
    assert!(host.statements("central").is_empty());
    assert_eq!(central.get(&format!("{JAR}.asc")).send().expect(200).body, b"signed");
}
