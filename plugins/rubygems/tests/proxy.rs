//! Tests of proxies with an upstream in memory, and of groups of hosted repositories and proxies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::gem;

use gem::{gem, sha256};
use packhouse_rubygems::RubyGems;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::json;

fn proxy(host: &MemoryHost) -> Mount<RubyGems> {
    host.set_now(1_795_237_300_000);
    host.mount::<RubyGems>(
        "proxy",
        "proxy",
        json!({"upstream": "https://upstream.test", "keep_withdrawn": true}),
    )
}

/// Sets the upstream's index: these versions of `lib`, and version 9.0 of `own`.
fn serve_upstream(host: &MemoryHost, versions: &[&str]) {
    let mut info = String::from("---\n");
    for version in versions {
        let file = gem("lib", version, "");
        info += &format!(
            "{version} dep:>= 1&< 3|checksum:{},ruby:>= 2.0,created_at:2026-01-02T03:04:05Z\n",
            sha256(&file)
        );
        host.answer_upstream("GET", &format!("gems/lib-{version}.gem"), 200, &[], &file);
        host.answer_upstream("GET", &format!("quick/Marshal.4.8/lib-{version}.gemspec.rz"), 200, &[], b"RZ");
    }
    host.answer_upstream("GET", "info/lib", 200, &[], info.as_bytes());
    host.answer_upstream("GET", "info/own", 200, &[], b"---\n9.0 |checksum:00\n");
    let versions = format!(
        "created_at: 2024-01-01T00:00:00Z\n---\nlib {} 0123\nown 9.0 4567\nlib -0.1 89ab\n",
        versions.join(",")
    );
    host.answer_upstream("GET", "versions", 200, &[], versions.as_bytes());
}

#[test]
fn documents_and_files_of_the_upstream_are_served() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    serve_upstream(&host, &["1.0", "1.1"]);
    let info = mount.get("/info/lib").send().expect(200).text();
    assert!(info.contains("1.1 dep:>= 1&< 3|checksum:"), "{info}");
    host.answer_upstream("GET", "info/absent", 404, &[], b"");
    mount.get("/info/absent").send().expect(404);
    assert_eq!(mount.get("/names").send().expect(200).text(), "---\nlib\nown\n");
    let versions = mount.get("/versions").send().expect(200).text();
    assert!(versions.ends_with("---\nlib 1.0,1.1 0123\nown 9.0 4567\nlib -0.1 89ab\n"), "{versions}");
    assert_eq!(mount.get("/gems/lib-1.0.gem").send().expect(200).body, gem("lib", "1.0", ""));
    assert_eq!(mount.get("/quick/Marshal.4.8/lib-1.0.gemspec.rz").send().expect(200).body, b"RZ");
    mount.get("/gems/lib-3.0.gem").send().expect(404);
    mount.get("/specs.4.8.gz").send().expect(200);
    let listed = host.versions("proxy");
    assert_eq!((listed.len(), listed[0].published), (1, Some(1_767_323_045_000)));
}

#[test]
fn a_gem_that_does_not_match_the_index_is_not_served() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    serve_upstream(&host, &["1.0"]);
    host.answer_upstream("GET", "gems/lib-1.0.gem", 200, &[], b"other");
    let answer = mount.get("/gems/lib-1.0.gem").send();
    assert!(answer.status >= 500, "{}", answer.status);
}

#[test]
fn a_fetched_version_that_the_upstream_yanks_is_withdrawn() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    serve_upstream(&host, &["1.0", "1.1"]);
    mount.get("/gems/lib-1.0.gem").send().expect(200);
    serve_upstream(&host, &["1.1"]);
    mount.get("/info/lib").send().expect(200);
    assert_eq!(host.versions("proxy")[0].state, "withdrawn");
    serve_upstream(&host, &["1.0", "1.1"]);
    mount.get("/info/lib").send().expect(200);
    assert_eq!(host.versions("proxy")[0].state, "");
}

#[test]
fn an_invalid_index_is_an_error_of_the_upstream() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    for body in [&b"<html>"[..], b"\xff", b""] {
        host.answer_upstream("GET", "versions", 200, &[], body);
        host.answer_upstream("GET", "info/lib", 200, &[], body);
        for path in ["/versions", "/names", "/specs.4.8.gz", "/info/lib"] {
            mount.get(path).send().expect(502);
        }
    }
    // If the upstream has no index or refuses to send it, the proxy answers 404.
    for status in [404, 410, 401, 402, 403, 405, 409, 451] {
        for target in ["versions", "info/lib"] {
            host.answer_upstream("GET", target, status, &[], b"");
        }
        for path in ["/versions", "/names", "/specs.4.8.gz", "/info/lib"] {
            mount.get(path).send().expect(404);
        }
    }
}

#[test]
fn names_of_hosted_members_are_not_taken_from_an_upstream() {
    let host = MemoryHost::new();
    proxy(&host);
    serve_upstream(&host, &["1.0"]);
    for (name, version) in [("one", "1.0"), ("two", "2.0")] {
        let mount = host.mount::<RubyGems>(name, "hosted", json!({}));
        mount.post("/api/v1/gems").body(gem("own", version, "")).send().expect(200);
    }
    let group = host.mount::<RubyGems>("all", "group", json!({})).members(&["one", "two", "proxy"]);
    let info = group.get("/info/own").send().expect(200).text();
    assert!(info.contains("\n1.0 |") && info.contains("\n2.0 |") && !info.contains("9.0"), "{info}");
    let versions = group.get("/versions").send().expect(200).text();
    assert!(
        versions.contains("\nown 2.0 ")
            && versions.contains("\nlib 1.0 0123\n")
            && !versions.contains("own 9.0"),
        "{versions}"
    );
    assert_eq!(group.get("/names").send().expect(200).text(), "---\nlib\nown\n");
    group.get("/gems/own-2.0.gem").send().expect(200);
    group.get("/gems/own-9.0.gem").send().expect(404);
    group.get("/gems/lib-1.0.gem").send().expect(200);
}
