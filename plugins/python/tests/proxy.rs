//! Tests of proxies with an upstream in memory, and of groups of hosted repositories and proxies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::wheel;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_python::Python;
use packhouse_sdk::Freshness;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;
pub(super) const JSON: &str = "application/vnd.pypi.simple.v1+json";

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn proxy(host: &MemoryHost, settings: Value) -> Mount<Python> {
    host.set_now(NOW);
    let mut all = json!({"upstream": "https://upstream.test"});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    host.mount::<Python>("proxy", "proxy", all)
}

/// Sets the upstream's JSON page of `demo`, with these versions and this upload time. The files are
/// on a separate host.
fn set_upstream_page(host: &MemoryHost, versions: &[&str], time: &str) {
    let files: Vec<Value> = versions.iter().map(|version| listed(version, time)).collect();
    let page = json!({"meta": {"api-version": "1.1"}, "name": "demo", "files": files}).to_string();
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], page.as_bytes());
    for version in versions {
        let file = wheel::wheel("demo", version, "");
        host.answer_upstream("GET", &address(version), 200, &[], &file);
        host.answer_upstream("GET", &format!("{}.metadata", address(version)), 200, &[], b"METADATA");
    }
}

fn address(version: &str) -> String {
    format!("https://files.test/x/{}", wheel::wheel_name("demo", version))
}

fn listed(version: &str, time: &str) -> Value {
    json!({
        "filename": wheel::wheel_name("demo", version), "url": address(version),
        "hashes": {"sha256": sha256(&wheel::wheel("demo", version, ""))}, "size": 7, "upload-time": time,
        "requires-python": ">=3.8", "core-metadata": {"sha256": sha256(b"METADATA")},
        "yanked": if version == "0.9" { json!("broken") } else { json!(false) },
    })
}

fn file(version: &str) -> String {
    format!("/packages/demo/{version}/{}", wheel::wheel_name("demo", version))
}

pub(super) fn page(mount: &Mount<Python>) -> Value {
    mount.get("/simple/demo/").header("accept", JSON).send().expect(200).json()
}

/// Returns the file names in a page, sorted.
pub(super) fn names(page: &Value) -> Vec<String> {
    let mut names: Vec<String> = page["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["filename"].as_str().unwrap().into())
        .collect();
    names.sort_unstable();
    names
}

fn publish(mount: &Mount<Python>, project: &str, version: &str) {
    let form = mount.post("/").part(":action", None, "file_upload").part("name", None, project);
    let content = wheel::wheel(project, version, "");
    form.part("version", None, version)
        .part("content", Some(&wheel::wheel_name(project, version)), content)
        .send()
        .expect(200);
}

#[test]
fn pages_link_to_the_proxy() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["0.9", "1.0", "1.10"], "2020-01-01T00:00:00.5Z");
    let page = page(&proxy);
    assert_eq!(page["versions"], json!(["0.9", "1.0", "1.10"]));
    let first = &page["files"][0];
    assert_eq!(first["url"], "../../packages/demo/0.9/demo-0.9-py3-none-any.whl");
    assert_eq!((&first["yanked"], &first["requires-python"]), (&json!("broken"), &json!(">=3.8")));
    assert_eq!((&first["upload-time"], &first["size"]), (&json!("2020-01-01T00:00:00.5Z"), &json!(7)));
    assert_eq!(first["core-metadata"]["sha256"], sha256(b"METADATA"));
    assert!(proxy.get("/simple/demo/").send().text().contains("data-yanked=\"broken\""));
    assert!(
        host.fetches()[0].headers.iter().any(|(name, value)| name == "accept" && value.starts_with(JSON))
    );
    proxy.get("/simple/Demo/").send().expect(301);
}

#[test]
fn files_are_fetched_with_their_expected_digest() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0"], "2020-01-01T00:00:00Z");
    let content = wheel::wheel("demo", "1.0", "");
    assert_eq!(proxy.get(&file("1.0")).send().expect(200).body, content);
    let fetched = host.fetches();
    let fetched = fetched.last().unwrap();
    assert_eq!(
        (fetched.target.as_str(), fetched.fresh),
        (address("1.0").as_str(), Some(Freshness::Immutable))
    );
    assert_eq!(fetched.expect[0].hex(), sha256(&content));
    assert_eq!(fetched.show_as.as_ref().unwrap().2, file("1.0").trim_start_matches('/'));
    assert_eq!(host.versions("proxy")[0].files.len(), 1);
    assert_eq!(proxy.get(&format!("{}.metadata", file("1.0"))).send().expect(200).text(), "METADATA");

    // The proxy serves a file that it has fetched once, even if the page fails.
    host.answer_upstream("GET", "simple/demo/", 500, &[], b"");
    proxy.get(&file("1.0")).send().expect(200);
    proxy.get("/simple/demo/").send().expect(502);
    assert!(proxy.get("/simple/").header("accept", JSON).send().text().contains("\"demo\""));
    proxy.get("/packages/demo/2.0/demo-1.0-py3-none-any.whl").send().expect(404);
    proxy.get(&format!("{}.asc", file("1.0"))).send().expect(404);
}

#[test]
fn files_that_do_not_match_the_page_are_not_served() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0"], "2020-01-01T00:00:00Z");
    host.answer_upstream("GET", &address("1.0"), 200, &[], b"other bytes");
    host.answer_upstream("GET", &format!("{}.metadata", address("1.0")), 200, &[], b"other");
    proxy.get(&file("1.0")).send().expect(502);
    proxy.get(&format!("{}.metadata", file("1.0"))).send().expect(502);
}

#[test]
fn an_upstream_may_speak_html_and_end_with_simple() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({"upstream": "https://upstream.test/root/simple/"}));
    let content = wheel::wheel("demo", "1.0", "");
    let name = wheel::wheel_name("demo", "1.0");
    let page = format!(
        "<a href=\"../files/{name}#sha256={}\" data-yanked=\"\">{name}</a><a href=\"x\">other-1.0.tar.gz</a><a href=\"y\">demo-1.0.txt</a>",
        sha256(&content)
    );
    host.answer_upstream(
        "GET",
        "demo/",
        200,
        &[("content-type", "text/html; charset=utf-8")],
        page.as_bytes(),
    );
    host.answer_upstream("GET", &format!("https://upstream.test/files/{name}"), 200, &[], &content);
    let answer = proxy.get("/simple/demo/").header("accept", JSON).send().expect(200).json();
    assert_eq!(answer["files"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&answer["files"][0]["yanked"], &answer["files"][0]["core-metadata"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(proxy.get(&file("1.0")).send().expect(200).body, content);
}

#[test]
fn missing_and_invalid_pages_have_different_statuses() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    let answer = |status, kind: &str, body: &str| {
        host.answer_upstream("GET", "simple/demo/", status, &[("content-type", kind)], body.as_bytes());
        proxy.get("/simple/demo/").send()
    };
    proxy.get("/simple/demo/").send().expect(502);
    answer(404, "text/html", "").expect(404);
    answer(500, "text/html", "").expect(502);
    for refused in [401, 402, 403, 405, 409, 451] {
        answer(refused, "text/html", "").expect(404);
    }
    answer(200, JSON, "{").expect(502);
    answer(200, JSON, "[]").expect(502);
    answer(200, "application/octet-stream", "").expect(502);
    answer(200, "text/html", "").expect(200);
}

#[test]
fn a_file_below_the_minimum_age_is_neither_listed_nor_served() {
    let host = MemoryHost::new();
    let day = json!({"min_release_age_s": 86_400});
    let young = proxy(&host, day);
    set_upstream_page(&host, &["1.0"], "2026-11-20T12:00:00Z");
    assert_eq!(page(&young)["files"], json!([]));
    young.get(&file("1.0")).send().expect(404);
    young.get(&format!("{}.metadata", file("1.0"))).send().expect(404);
    host.set_now(NOW + 86_400_000);
    assert_eq!(page(&young)["files"].as_array().unwrap().len(), 1);
    young.get(&file("1.0")).send().expect(200);

    let excepted = proxy(&host, json!({"min_release_age_s": 86_400, "min_release_age_except": ["de*"]}));
    assert_eq!(page(&excepted)["files"].as_array().unwrap().len(), 1);
    let untimed = proxy(&host, json!({"min_release_age_s": 86_400}));
    let html = "<a href=\"demo-1.0.tar.gz\">demo-1.0.tar.gz</a>";
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", "text/html")], html.as_bytes());
    assert_eq!(page(&untimed)["files"], json!([]), "the server first saw the file just now");
    host.set_now(NOW + 2 * 86_400_000);
    assert_eq!(page(&untimed)["files"].as_array().unwrap().len(), 1);
}

#[test]
fn a_withheld_version_is_neither_listed_nor_served() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    host.withhold_version("demo", "2.0");
    assert_eq!(page(&proxy)["versions"], json!(["1.0"]));
    proxy.get(&file("2.0")).send().expect(404);
    proxy.get(&format!("{}.metadata", file("2.0"))).send().expect(404);
    proxy.get(&file("1.0")).send().expect(200);
}

#[test]
fn a_page_lists_the_reason_for_a_file_that_a_policy_withholds() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    host.deny_version("demo", "2.0", "Its licence is not accepted (policy ours)");
    let page = page(&proxy);
    assert_eq!(page["versions"], json!(["1.0", "2.0"]));
    let yanked: Vec<&Value> = page["files"].as_array().unwrap().iter().map(|file| &file["yanked"]).collect();
    assert_eq!(yanked, [&json!(false), &json!("Its licence is not accepted (policy ours)")]);
    assert_eq!(page["files"][1]["core-metadata"], json!(false), "the host would refuse the metadata");
    let html = proxy.get("/simple/demo/").header("accept", "text/html").send().text();
    assert!(html.contains("data-yanked=\"Its licence is not accepted (policy ours)\""), "{html}");
    proxy.get(&file("2.0")).send().expect(404);
    proxy.get(&file("1.0")).send().expect(200);
    // PyPI's own documents list only offered versions.
    let document = proxy.get("/pypi/demo/json").send().json();
    assert_eq!(document["info"]["version"], "1.0");
    assert_eq!(document["releases"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1.0"]);
    proxy.get("/pypi/demo/1.0/json").send().expect(200);
    proxy.get("/pypi/demo/2.0/json").send().expect(404);
}

#[test]
fn attestations_are_recorded_once_even_if_the_file_is_denied() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    let signed = |version: &str| {
        let mut listed = listed(version, "2020-01-01T00:00:00Z");
        listed["provenance"] = json!(format!("https://upstream.test/integrity/{version}"));
        listed
    };
    let page =
        json!({"meta": {"api-version": "1.1"}, "name": "demo", "files": [signed("1.0"), signed("2.0")]});
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], page.to_string().as_bytes());
    let subject = json!({"name": wheel::wheel_name("demo", "2.0"), "digest": {"sha256": sha256(&wheel::wheel("demo", "2.0", ""))}});
    let statement = STANDARD.encode(json!({"subject": [subject]}).to_string());
    let attestation = json!({
        "version": 1, "envelope": {"statement": statement, "signature": "AAAA"},
        "verification_material": {"certificate": "AAAA", "transparency_entries": []},
    });
    let provenance = json!({"version": 1, "attestation_bundles": [{"attestations": [attestation]}]});
    let two = "https://upstream.test/integrity/2.0";
    host.answer_upstream("GET", two, 200, &[], provenance.to_string().as_bytes());
    host.deny_version("demo", "2.0", "Nobody may have it (policy ours)");
    proxy.get(&file("2.0")).send().expect(404);
    assert_eq!(host.statements("proxy").len(), 1);
    let revision = host.revision("proxy");
    proxy.get(&file("2.0")).send().expect(404);
    assert_eq!((host.statements("proxy").len(), host.revision("proxy")), (1, revision));
    let requests = |address: &str| host.fetched().iter().filter(|target| target.contains(address)).count();
    assert_eq!(requests(two), 1);

    // For version 1.0, the first request for attestations fails. The upstream answers the second
    // request with 404, because it has no attestations.
    let one = "https://upstream.test/integrity/1.0";
    host.fail_upstream("GET", one, packhouse_sdk::Error::Unavailable("gone".to_owned()));
    proxy.get(&file("1.0")).send().expect(200);
    host.answer_upstream("GET", one, 404, &[], b"");
    proxy.get(&file("1.0")).send().expect(200);
    let (revision, before) = (host.revision("proxy"), requests(one));
    proxy.get(&file("1.0")).send().expect(200);
    assert_eq!((host.revision("proxy"), requests(one), before), (revision, 2, 2));
}

#[test]
fn a_file_that_the_upstream_withdraws_is_no_longer_offered() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    proxy.get(&file("2.0")).send().expect(200);
    set_upstream_page(&host, &["1.0"], "2020-01-01T00:00:00Z");
    assert_eq!(page(&proxy)["versions"], json!(["1.0"]));
    assert_eq!(host.versions("proxy")[0].state, "withdrawn");
    proxy.get(&file("2.0")).send().expect(404);
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    assert_eq!(page(&proxy)["versions"], json!(["1.0", "2.0"]));
    assert_eq!(host.versions("proxy")[0].state, "");
    proxy.get(&file("2.0")).send().expect(200);
}

#[test]
fn a_setting_keeps_withdrawn_files() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({"keep_withdrawn": true}));
    set_upstream_page(&host, &["1.0", "2.0"], "2020-01-01T00:00:00Z");
    proxy.get(&file("2.0")).send().expect(200);
    host.answer_upstream("GET", "simple/demo/", 404, &[], b"");
    assert_eq!(page(&proxy)["versions"], json!(["2.0"]));
    proxy.get(&file("2.0")).send().expect(200);
    proxy.get(&file("1.0")).send().expect(404);
}

#[test]
fn a_refusal_at_either_path_of_a_page_withdraws_nothing() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    for (index, folder) in [(403, 404), (404, 403)] {
        set_upstream_page(&host, &["1.0"], "2020-01-01T00:00:00Z");
        proxy.get(&file("1.0")).send().expect(200);
        host.answer_upstream("GET", "simple/demo/", index, &[], b"");
        host.answer_upstream("GET", "demo/", folder, &[], b"");
        proxy.get("/simple/demo/").send().expect(404);
        assert_eq!(host.versions("proxy")[0].state, "", "{index}, {folder}");
    }
}

#[test]
fn a_claimed_name_is_never_requested() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({"claimed_names": ["De*"]}));
    set_upstream_page(&host, &["99.0"], "2020-01-01T00:00:00Z");
    proxy.get("/simple/demo/").send().expect(404);
    proxy.get(&file("99.0")).send().expect(404);
    assert!(host.fetched().is_empty());
}

#[test]
fn in_a_group_a_hosted_name_hides_a_proxys() {
    let host = MemoryHost::new();
    let upstream = proxy(&host, json!({}));
    set_upstream_page(&host, &["99.0"], "2020-01-01T00:00:00Z");
    let hosted = host.mount::<Python>("hosted", "hosted", json!({}));
    let second = host.mount::<Python>("second", "hosted", json!({}));
    let group = host.mount::<Python>("group", "group", json!({})).members(&["proxy", "hosted", "second"]);
    assert_eq!(page(&group)["versions"], json!(["99.0"]));
    group.get(&file("99.0")).send().expect(200);

    publish(&hosted, "demo", "1.0");
    publish(&second, "demo", "1.0");
    publish(&second, "demo", "1.1");
    publish(&second, "other", "1.0");
    let requests = host.fetched().len();
    assert_eq!(page(&group)["versions"], json!(["1.0", "1.1"]));
    assert_eq!(page(&group)["files"].as_array().unwrap().len(), 2);
    group.get(&file("99.0")).send().expect(404);
    assert_eq!(group.get(&file("1.1")).send().expect(200).body, wheel::wheel("demo", "1.1", ""));
    group.get(&format!("{}.metadata", file("1.1"))).send().expect(200);
    assert_eq!(group.get("/pypi/demo/json").send().expect(200).json()["info"]["summary"], "About demo");
    assert_eq!(host.fetched().len(), requests, "no request may reach the upstream");
    let list = group.get("/simple/").header("accept", JSON).send().expect(200).json();
    assert_eq!(list["projects"], json!([{"name": "demo"}, {"name": "other"}]));
    assert_eq!(page(&upstream)["versions"], json!(["99.0"]));
}

#[test]
fn a_group_claims_names_for_its_hosted_members() {
    let host = MemoryHost::new();
    proxy(&host, json!({}));
    set_upstream_page(&host, &["99.0"], "2020-01-01T00:00:00Z");
    let group =
        host.mount::<Python>("group", "group", json!({"claimed_names": ["demo"]})).members(&["proxy"]);
    group.get("/simple/demo/").send().expect(404);
    group.get(&file("99.0")).send().expect(404);
    assert!(host.fetched().is_empty());
}

#[test]
fn a_name_in_an_unreadable_member_hides_a_proxys() {
    let host = MemoryHost::new();
    proxy(&host, json!({}));
    set_upstream_page(&host, &["99.0"], "2020-01-01T00:00:00Z");
    let hosted = host.mount::<Python>("hosted", "hosted", json!({})).unreadable();
    let group = host.mount::<Python>("group", "group", json!({})).members(&["proxy", "hosted"]);
    let listed = || {
        let list = group.get("/simple/").header("accept", JSON).send().expect(200).json();
        list["projects"].as_array().unwrap().len()
    };
    assert_eq!(page(&group)["versions"], json!(["99.0"]));
    group.get(&file("99.0")).send().expect(200);
    assert_eq!(listed(), 1);
    publish(&hosted, "demo", "1.0");
    let requests = host.fetched().len();
    group.get("/simple/demo/").send().expect(404);
    group.get(&file("99.0")).send().expect(404);
    assert_eq!((host.fetched().len(), listed()), (requests, 0));
}

#[test]
fn all_kinds_of_files_in_a_page_are_listed() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    let files = [
        "demo-20.3.0.tar.bz2",
        "demo-20.3.0.tgz",
        "demo-20.3.0.tar.xz",
        "demo-20.3.0-py2.7.egg",
        "demo-20.3.0.win32-py2.7.exe",
        "demo-20.3.0.win32-py2.7.msi",
        "demo-20.3.0-1.noarch.rpm",
    ];
    let listed: Vec<Value> = files
        .iter()
        .map(|name| json!({"filename": name, "url": format!("https://files.test/{name}"), "hashes": {"sha256": sha256(name.as_bytes())}}))
        .chain([json!({"filename": "demo-1.0.txt", "url": "x"}), json!({"filename": 7}), json!(null)])
        .collect();
    let document = json!({"meta": {"api-version": "1.1"}, "files": listed}).to_string();
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], document.as_bytes());
    let mut expected: Vec<String> = files.map(str::to_owned).into();
    expected.sort_unstable();
    let page = page(&proxy);
    assert_eq!((names(&page), &page["versions"]), (expected, &json!(["20.3.0"])));
    for name in files {
        host.answer_upstream("GET", &format!("https://files.test/{name}"), 200, &[], name.as_bytes());
        let path = format!("/packages/demo/20.3.0/{name}");
        assert_eq!(proxy.get(&path).send().expect(200).body, name.as_bytes());
    }
}

#[test]
fn a_member_of_an_unexpected_type_is_ignored() {
    let host = MemoryHost::new();
    let proxy = proxy(&host, json!({}));
    let file = json!({
        "filename": "demo-1.0.tar.gz", "url": "https://files.test/demo-1.0.tar.gz", "hashes": ["sha256"], "size": "9",
        "requires-python": 3, "upload-time": 7, "yanked": null, "core-metadata": "yes",
    });
    let document = json!({"files": [file]}).to_string();
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", JSON)], document.as_bytes());
    let page = page(&proxy);
    assert_eq!((names(&page), &page["files"][0]["hashes"]), (vec!["demo-1.0.tar.gz".to_owned()], &json!({})));
}

#[test]
fn a_group_leaves_out_an_invalid_page() {
    let host = MemoryHost::new();
    let alone = proxy(&host, json!({}));
    host.answer_upstream(
        "GET",
        "simple/demo/",
        200,
        &[("content-type", JSON)],
        br#"{"files": [{"filename": "#,
    );
    let message = alone.get("/simple/demo/").send().expect(502).text().to_owned();
    assert!(message.contains("it is not a JSON object, for simple/demo/"), "{message}");
    host.mount::<Python>("second", "proxy", json!({"upstream": "https://upstream.test/simple"}));
    let group = host.mount::<Python>("group", "group", json!({})).members(&["proxy", "second"]);
    // The second proxy requests the page at another path of the same upstream.
    let document = json!({"files": [listed("1.0", "2020-01-01T00:00:00Z")]}).to_string();
    host.answer_upstream("GET", "demo/", 200, &[("content-type", "text/plain")], b"");
    group.get("/simple/demo/").send().expect(502);
    host.answer_upstream("GET", "demo/", 200, &[("content-type", JSON)], document.as_bytes());
    host.answer_upstream("GET", "simple/demo/", 200, &[("content-type", "text/plain")], b"Come back later");
    assert_eq!(page(&group)["versions"], json!(["1.0"]));
    let content = wheel::wheel("demo", "1.0", "");
    host.answer_upstream("GET", &address("1.0"), 200, &[], &content);
    assert_eq!(group.get(&file("1.0")).send().expect(200).body, content);
}
