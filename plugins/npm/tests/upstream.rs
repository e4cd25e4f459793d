//! Proxies and groups on the in-memory host: the requests to an upstream, and the responses to
//! clients.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table::release;

use flate2::Compression;
use flate2::write::GzEncoder;
use packhouse_npm::Npm;
use packhouse_sdk::Freshness;
use packhouse_testkit::{MemoryHost, Mount};
use release::Release;
use serde_json::{Value, json};
use std::io::Write as _;

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;
const DAY: u64 = 24 * 60 * 60;
const INSTALL: &str = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";

/// Creates a proxy of an upstream with two versions of `lib`: 1.0.0 is ten days old, and 1.1.0 is
/// one day old.
fn proxy(settings: Value) -> (MemoryHost, Mount<Npm>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Npm>("mirror", "proxy", settings);
    upstream(&host, &["1.0.0", "1.1.0"]);
    (host, mount)
}

fn version(number: &str) -> Value {
    let release = Release::new("lib", number);
    json!({
        "name": "lib", "version": number, "description": "from elsewhere", "dependencies": {"dep": "1"}, "x": "y",
        "dist": {"tarball": tarball_address(number), "integrity": release.integrity(), "shasum": release.shasum(),
            "signatures": [{"keyid": "theirs", "sig": "AA=="}],
            "attestations": {"url": "https://elsewhere.test/x", "provenance": {"predicateType": "p"}}},
    })
}

fn tarball_address(number: &str) -> String {
    format!("https://files.elsewhere.test/lib/-/lib-{number}.tgz")
}

/// Returns an upstream's packument, in which the versions come before their times.
fn packument(numbers: &[&str]) -> String {
    let versions: Vec<String> =
        numbers.iter().map(|number| format!("\"{number}\":{}", version(number))).collect();
    let times = json!({"created": "2026-11-11T05:01:40.000Z", "modified": "2026-11-20T05:01:40.000Z",
        "1.0.0": "2026-11-11T05:01:40.000Z", "1.1.0": "2026-11-20T05:01:40.000Z"});
    let tags = json!({"latest": numbers.last().unwrap(), "next": "1.1.0"});
    format!(
        "{{\"_id\":\"lib\",\"name\":\"lib\",\"dist-tags\":{tags},\"versions\":{{{}}},\"time\":{times},\"readme\":\"# theirs\"}}",
        versions.join(",")
    )
}

fn upstream(host: &MemoryHost, numbers: &[&str]) {
    host.answer_upstream(
        "GET",
        "lib",
        200,
        &[("content-type", "application/json")],
        packument(numbers).as_bytes(),
    );
    for number in numbers {
        let tarball = Release::new("lib", number).tarball();
        host.answer_upstream("GET", &tarball_address(number), 200, &[], &tarball);
    }
}

fn numbers(mount: &Mount<Npm>, name: &str) -> Vec<String> {
    let document = mount.get(&format!("/{name}")).send().expect(200).json();
    document["versions"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn a_proxied_packument_has_the_proxys_addresses() {
    let (host, mount) = proxy(json!({}));
    for (accept, has, lacks) in [
        ("application/json", "\"x\":\"y\"", "\"_rev\""),
        (INSTALL, "\"dependencies\":{\"dep\":\"1\"}", "\"x\":\"y\""),
    ] {
        let answer = mount.get("/lib").header("accept", accept).send().expect(200);
        let document = answer.json();
        let dist = &document["versions"]["1.0.0"]["dist"];
        assert_eq!(dist["tarball"], "https://packhouse.test/repositories/mirror/lib/-/lib-1.0.0.tgz");
        assert_eq!(
            dist["attestations"]["url"],
            "https://packhouse.test/repositories/mirror/-/npm/v1/attestations/lib@1.0.0"
        );
        assert_eq!(dist["integrity"], Release::new("lib", "1.0.0").integrity());
        assert_eq!(dist["signatures"][0]["keyid"], "theirs");
        assert_eq!(document["time"]["1.1.0"], "2026-11-20T05:01:40.000Z");
        assert_eq!(document["dist-tags"], json!({"latest": "1.1.0", "next": "1.1.0"}));
        assert!(answer.text().contains(has) && !answer.text().contains(lacks), "{answer}");
        assert!(!answer.text().contains("elsewhere.test"), "{answer}");
    }
    assert_eq!(mount.get("/lib").send().json()["readme"], "# theirs");
    assert_eq!(mount.get("/lib/next").send().expect(200).json()["version"], "1.1.0");
    assert_eq!(mount.get("/-/package/lib/dist-tags").send().expect(200).json()["next"], "1.1.0");
    let fetches = host.fetches();
    assert!(fetches.iter().all(|fetch| fetch.target == "lib" && fetch.fresh.is_none()), "{fetches:?}");
}

#[test]
fn a_tarball_must_match_the_packument() {
    let (host, mount) = proxy(json!({}));
    let release = Release::new("lib", "1.0.0");
    let answer = mount.get("/lib/-/lib-1.0.0.tgz").send().expect(200);
    assert_eq!(
        (answer.body, answer.headers[1].1.as_str()),
        (release.tarball(), "private, max-age=31536000, immutable")
    );
    let fetches = host.fetches();
    let fetch = fetches.last().unwrap();
    assert_eq!(
        (fetch.target.as_str(), fetch.fresh),
        (tarball_address("1.0.0").as_str(), Some(Freshness::Immutable))
    );
    assert_eq!(fetch.expect[0].algorithm(), "sha512");
    assert_eq!(host.versions("mirror")[0].files[0].path, "lib/-/lib-1.0.0.tgz");

    host.answer_upstream("GET", &tarball_address("1.1.0"), 200, &[], b"something else");
    mount.get("/lib/-/lib-1.1.0.tgz").send().expect(502);
    mount.get("/lib/-/lib-9.9.9.tgz").send().expect(404);
}

#[test]
fn missing_packages_and_upstream_failures_are_distinguished() {
    let (host, mount) = proxy(json!({}));
    host.answer_upstream("GET", "none", 404, &[], b"{}");
    host.answer_upstream("GET", "broken", 500, &[], b"");
    host.answer_upstream("GET", "garbage", 200, &[], b"<html>");
    host.answer_upstream("GET", "half", 200, &[], &packument(&["1.0.0"]).as_bytes()[..200]);
    host.answer_upstream("GET", "@acme%2flib", 404, &[], b"{}");
    for (name, status) in [
        ("none", 404),
        ("broken", 502),
        ("garbage", 502),
        ("half", 502),
        ("unreachable", 502),
        ("@acme/lib", 404),
    ] {
        mount.get(&format!("/{name}")).send().expect(status);
    }
    for status in [401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", "none", status, &[], b"{}");
        mount.get("/none").send().expect(404);
        // A 404 lets a group continue with its next member if the upstream refuses a tarball.
        host.answer_upstream("GET", &tarball_address("1.1.0"), status, &[], b"");
        mount.get("/lib/-/lib-1.1.0.tgz").send().expect(404);
    }
}

#[test]
fn latest_names_a_version_that_can_be_read() {
    let (host, mount) = proxy(json!({}));
    let odd = packument(&["1.0.0", "1.1.0"]).replace("\"version\":\"1.1.0\"", "\"version\":\"another\"");
    host.answer_upstream("GET", "lib", 200, &[("content-type", "application/json")], odd.as_bytes());
    for accept in ["application/json", INSTALL] {
        let document = mount.get("/lib").header("accept", accept).send().expect(200).json();
        assert_eq!(document["versions"].as_object().unwrap().len(), 1);
        assert_eq!(document["dist-tags"], json!({"latest": "1.0.0"}));
    }
}

#[test]
fn a_young_version_is_not_offered() {
    let (host, mount) = proxy(json!({"min_release_age_s": 3 * DAY}));
    assert_eq!(numbers(&mount, "lib"), ["1.0.0"]);
    let document = mount.get("/lib").send().json();
    assert_eq!(document["dist-tags"], json!({"latest": "1.0.0"}), "no tag names a withheld version");
    mount.get("/lib/1.1.0").send().expect(404);
    mount.get("/lib/-/lib-1.1.0.tgz").send().expect(404);
    mount.get("/lib/-/lib-1.0.0.tgz").send().expect(200);
    host.set_now(NOW + 3 * DAY * 1000);
    assert_eq!(numbers(&mount, "lib"), ["1.0.0", "1.1.0"]);

    let (_, mount) = proxy(json!({"min_release_age_s": 3 * DAY, "min_release_age_except": ["li*"]}));
    assert_eq!(numbers(&mount, "lib"), ["1.0.0", "1.1.0"]);
}

#[test]
fn a_version_that_the_host_withholds_is_neither_listed_nor_served() {
    let (host, mount) = proxy(json!({}));
    host.withhold_version("lib", "1.1.0");
    assert_eq!(numbers(&mount, "lib"), ["1.0.0"]);
    assert_eq!(mount.get("/lib").send().json()["dist-tags"], json!({"latest": "1.0.0"}));
    mount.get("/lib/1.1.0").send().expect(404);
    mount.get("/lib/-/lib-1.1.0.tgz").send().expect(404);
    mount.get("/lib/-/lib-1.0.0.tgz").send().expect(200);
}

#[test]
fn a_packument_lists_withheld_versions_with_reasons() {
    let (host, mount) = proxy(json!({}));
    host.deny_version("lib", "1.1.0", "Its licence is not accepted (policy ours)");
    assert_eq!(numbers(&mount, "lib"), ["1.0.0"]);
    let restricted = json!({"message": "Its licence is not accepted (policy ours)",
        "versions": {"1.1.0": {"name": "lib", "version": "1.1.0"}}});
    let document = mount.get("/lib").send().json();
    assert_eq!(
        (&document["policyRestrictions"], &document["dist-tags"]["latest"]),
        (&restricted, &json!("1.0.0"))
    );
    let short = mount.get("/lib").header("accept", "application/vnd.npm.install-v1+json").send().json();
    assert_eq!(short["policyRestrictions"], restricted);
    for path in ["/lib/1.1.0", "/lib/-/lib-1.1.0.tgz"] {
        mount.get(path).send().expect(404);
    }

    // If a hosted member of a group has the package, the group does not show the proxy's versions
    // and restrictions.
    let group = host.mount::<Npm>("group", "group", json!({})).members(&["mirror"]);
    assert_eq!(group.get("/lib").send().json()["policyRestrictions"], restricted);
    publish(&host.mount::<Npm>("own", "hosted", json!({})), &Release::new("lib", "1.1.0"));
    let group = host.mount::<Npm>("group", "group", json!({})).members(&["mirror", "own"]);
    assert_eq!(numbers(&group, "lib"), ["1.1.0"]);
    assert_eq!(group.get("/lib").send().json()["policyRestrictions"], json!(null));
    group.get("/lib/-/lib-1.1.0.tgz").send().expect(200);
}

#[test]
fn a_withdrawn_version_is_marked_and_no_longer_offered() {
    for keep in [false, true] {
        let (host, mount) = proxy(json!({"keep_withdrawn": keep}));
        mount.get("/lib/-/lib-1.1.0.tgz").send().expect(200);
        upstream(&host, &["1.0.0"]);
        let expected: &[&str] = if keep { &["1.0.0", "1.1.0"] } else { &["1.0.0"] };
        assert_eq!(numbers(&mount, "lib"), expected);
        mount.get("/lib/-/lib-1.1.0.tgz").send().expect(if keep { 200 } else { 404 });
        assert_eq!(host.versions("mirror")[0].state, "withdrawn");
        assert_eq!(mount.get("/lib").send().json()["dist-tags"]["latest"], "1.0.0");
        upstream(&host, &["1.0.0", "1.1.0"]);
        assert_eq!(numbers(&mount, "lib"), ["1.0.0", "1.1.0"]);
        assert_eq!(host.versions("mirror")[0].state, "", "the mark is removed");
    }
}

#[test]
fn a_withdrawn_version_that_is_still_offered_must_have_the_minimum_age() {
    let (host, mount) = proxy(json!({"keep_withdrawn": true, "min_release_age_s": DAY}));
    mount.get("/lib/-/lib-1.1.0.tgz").send().expect(200);
    upstream(&host, &["1.0.0"]);
    assert_eq!(numbers(&mount, "lib"), ["1.0.0", "1.1.0"]);
    host.set_now(NOW - 1);
    assert_eq!(numbers(&mount, "lib"), ["1.0.0"]);
    mount.get("/lib/-/lib-1.1.0.tgz").send().expect(404);
}

#[test]
fn a_group_offers_what_its_proxy_may() {
    let (host, _) = proxy(json!({"min_release_age_s": 3 * DAY}));
    let group = host.mount::<Npm>("group", "group", json!({})).members(&["mirror"]);
    assert_eq!(numbers(&group, "lib"), ["1.0.0"]);
    group.get("/lib/-/lib-1.1.0.tgz").send().expect(404);
    host.set_now(NOW + 3 * DAY * 1000);
    assert_eq!(numbers(&group, "lib"), ["1.0.0", "1.1.0"]);
}

#[test]
fn searches_audits_and_keys_are_passed_on() {
    let (host, mount) = proxy(json!({}));
    host.answer_upstream(
        "GET",
        "-/v1/search?text=left%20pad&size=2",
        200,
        &[],
        br#"{"objects":[{"package":{"name":"left-pad"}}],"total":7}"#,
    );
    let found = mount.get("/-/v1/search?text=left+pad&size=2").send().expect(200).json();
    assert_eq!((&found["objects"][0]["package"]["name"], &found["total"]), (&json!("left-pad"), &json!(7)));
    host.answer_upstream("POST", "-/npm/v1/security/advisories/bulk", 200, &[], br#"{"lib":[{"id":1}]}"#);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(br#"{"lib":["1.0.0"]}"#).unwrap();
    let packed = packed.finish().unwrap();
    let request =
        mount.post("/-/npm/v1/security/advisories/bulk").header("content-encoding", "gzip").body(&packed);
    assert_eq!(request.send().expect(200).json()["lib"][0]["id"], 1);
    let sent = host.fetches().pop().unwrap();
    assert_eq!(
        (
            sent.body.as_slice(),
            sent.headers.iter().any(|(name, value)| name == "content-encoding" && value == "gzip")
        ),
        (packed.as_slice(), true)
    );
    host.answer_upstream("GET", "-/npm/v1/keys", 200, &[], br#"{"keys":[{"keyid":"theirs"}]}"#);
    assert_eq!(mount.get("/-/npm/v1/keys").send().expect(200).json(), json!({"keys": [{"keyid": "theirs"}]}));
    host.answer_upstream("GET", "-/npm/v1/attestations/lib@1.0.0", 200, &[], br#"{"attestations":[]}"#);
    mount.get("/-/npm/v1/attestations/lib@1.0.0").send().expect(200);
}

#[test]
fn an_upstream_without_audits_is_ignored() {
    let (host, mount) = proxy(json!({}));
    let bulk = "/-/npm/v1/security/advisories/bulk";
    let answers =
        |status: u16, body: &str| host.answer_upstream("POST", &bulk[1..], status, &[], body.as_bytes());
    let ask = |mount: &Mount<Npm>| mount.post(bulk).json(&json!({"lib": ["1.0.0"]})).send();
    for status in [404, 405, 409, 410, 501] {
        answers(status, "no");
        assert_eq!(ask(&mount).expect(200).json(), json!({}), "{status}");
    }
    for status in [401, 402, 403, 451] {
        answers(status, "{}");
        let refused = ask(&mount).expect(502).text();
        assert!(refused.contains(&format!("refuses audits with status {status}")), "{refused}");
    }
    for (status, body) in [(500, "{}"), (200, "<html>")] {
        answers(status, body);
        ask(&mount).expect(502);
    }
    answers(200, r#"{"lib":[{"id":1}]}"#);
    host.mount::<Npm>("second", "proxy", json!({}));
    let group = host.mount::<Npm>("all", "group", json!({})).members(&["mirror", "second"]);
    assert_eq!(ask(&group).expect(200).json(), json!({"lib": [{"id": 1}]}));
    let repositories: Vec<String> =
        host.fetches().into_iter().rev().take(2).map(|fetch| fetch.repository).collect();
    assert_eq!(repositories, ["second", "mirror"]);
}

/// Creates a group of a hosted repository and a proxy, in this order.
fn group(settings: Value) -> (MemoryHost, Mount<Npm>, Mount<Npm>) {
    let (host, _) = proxy(json!({}));
    let own = host.mount::<Npm>("own", "hosted", json!({}));
    let group = host.mount::<Npm>("all", "group", settings).members(&["own", "mirror"]);
    (host, own, group)
}

fn publish(mount: &Mount<Npm>, release: &Release) {
    mount.put(&release.path()).json(&release.document()).send().expect(201);
}

#[test]
fn a_group_serves_its_members_at_its_own_address() {
    let (_, own, group) = group(json!({}));
    publish(&own, &Release::new("ours", "1.0.0"));
    assert_eq!(
        (numbers(&group, "ours"), numbers(&group, "lib")),
        (vec!["1.0.0".to_owned()], vec!["1.0.0".to_owned(), "1.1.0".to_owned()])
    );
    let document = group.get("/lib").send().json();
    assert_eq!(
        document["versions"]["1.0.0"]["dist"]["tarball"],
        "https://packhouse.test/repositories/all/lib/-/lib-1.0.0.tgz"
    );
    assert_eq!(
        group.get("/lib/-/lib-1.0.0.tgz").send().expect(200).body,
        Release::new("lib", "1.0.0").tarball()
    );
    assert_eq!(
        group.get("/ours/-/ours-1.0.0.tgz").send().expect(200).body,
        Release::new("ours", "1.0.0").tarball()
    );
    let found = group.get("/-/v1/search?text=our").send().expect(200).json();
    assert_eq!(found["total"], 1, "an upstream that fails is left out");
    let ours = group.get("/-/v1/search?text=ours").send().expect(200).json();
    assert_eq!(ours["total"], 1, "the upstream must not receive a hosted name");
}

#[test]
fn a_hosted_name_hides_the_same_name_upstream() {
    let (_, own, group) = group(json!({}));
    publish(&own, &Release::new("lib", "0.1.0"));
    assert_eq!(numbers(&group, "lib"), ["0.1.0"]);
    group.get("/lib/1.0.0").send().expect(404);
    group.get("/lib/-/lib-1.0.0.tgz").send().expect(404);
    assert_eq!(group.get("/-/package/lib/dist-tags").send().json(), json!({"latest": "0.1.0"}));

    let (host, _, group) = self::group(json!({"claimed_names": ["lib", "@acme/*"]}));
    for path in ["/lib", "/@acme/any", "/lib/-/lib-1.0.0.tgz"] {
        group.get(path).send().expect(404);
    }
    assert_eq!(host.fetches(), [], "no upstream is asked");
}

#[test]
fn hosted_members_are_merged() {
    let host = MemoryHost::new();
    let (one, two) =
        (host.mount::<Npm>("one", "hosted", json!({})), host.mount::<Npm>("two", "hosted", json!({})));
    let group = host.mount::<Npm>("all", "group", json!({})).members(&["one", "two"]);
    publish(&one, &Release::new("lib", "1.0.0"));
    publish(&two, &Release::new("lib", "1.0.0").file("a", "other"));
    publish(&two, &Release::new("lib", "2.0.0").tag("next"));
    assert_eq!(numbers(&group, "lib"), ["1.0.0", "2.0.0"]);
    let tags = json!({"latest": "1.0.0", "next": "2.0.0"});
    assert_eq!(group.get("/-/package/lib/dist-tags").send().json(), tags);
    assert_eq!(group.get("/lib").send().json()["dist-tags"], tags);
    assert_eq!(
        group.get("/lib/-/lib-1.0.0.tgz").send().body,
        Release::new("lib", "1.0.0").tarball(),
        "the first member's tarball is served"
    );
}

#[test]
fn an_audit_includes_the_hosts_advisories() {
    let (host, mount) = proxy(json!({}));
    let bulk = "/-/npm/v1/security/advisories/bulk";
    let known = json!([{
        "id": "GHSA-1", "summary": "It leaks", "severity": "unknown", "malware": false, "url": "https://a.example/GHSA-1",
        "affected": {"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "2.0.0"}]}], "versions": []},
    }]);
    host.advise("lib", known.clone());
    host.answer_upstream("POST", &bulk[1..], 200, &[], br#"{"other":[{"id":1}]}"#);
    let ask = |mount: &Mount<Npm>, version: &str| {
        mount.post(bulk).json(&json!({"lib": [version]})).send().expect(200).json()
    };
    let advisories = ask(&mount, "1.0.0");
    assert_eq!(
        (&advisories["other"][0]["id"], &advisories["lib"][0]["vulnerable_versions"]),
        (&json!(1), &json!("<2.0.0"))
    );
    assert_eq!(advisories["lib"][0]["severity"], "info", "npm has no name for an unknown severity");
    assert_eq!(ask(&mount, "2.0.0"), json!({"other": [{"id": 1}]}));
    let own = host.mount::<Npm>("own", "hosted", json!({}));
    assert_eq!(ask(&own, "1.9.0")["lib"][0]["title"], "It leaks (GHSA-1)");
    // An offline proxy uses only local advisories.
    let (host, offline) = proxy(json!({"offline": true}));
    assert_eq!(ask(&offline, "1.0.0"), json!({}));
    assert!(host.fetched().is_empty());
    own.post(bulk).body("[]").send().expect(400);
    // The older form of an audit: the upstream reports one advisory, and the host adds another.
    let audits = "/-/npm/v1/security/audits";
    let tree = json!({"requires": {"a": "1"}, "dependencies": {"a": {"version": "1.0.0", "dependencies": {"lib": {"version": "1.0.0"}}}}});
    let (host, mount) = proxy(json!({}));
    host.advise("lib", known);
    let upstreams = br#"{"actions":[],"advisories":{"1":{"module_name":"a","url":"x"}},"metadata":{"vulnerabilities":{"low":1,"info":0}}}"#;
    host.answer_upstream("POST", &audits[1..], 200, &[], upstreams);
    let report = mount.post(audits).json(&tree).send().expect(200).json();
    assert_eq!(report["advisories"].as_object().unwrap().len(), 2, "{report}");
    assert_eq!(report["metadata"]["vulnerabilities"], json!({"low": 1, "info": 1}));
    assert_eq!(report["actions"][0]["resolves"][0]["path"], "a>lib");
    let report = own.post(audits).json(&tree).send().expect(200).json();
    assert_eq!(
        (&report["metadata"]["totalDependencies"], &report["metadata"]["vulnerabilities"]["info"]),
        (&json!(2), &json!(1))
    );
    let fixed = json!({"dependencies": {"lib": {"version": "2.0.0"}}});
    assert_eq!(own.post(audits).json(&fixed).send().expect(200).json()["advisories"], json!({}));
}
