//! Files that a Python proxy withholds, because they are withdrawn or too young. The proxy neither
//! lists them on its pages nor serves them. In a group, a hosted name hides the same name of every
//! upstream.

use crate::wheel;

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Request, Response, Server, digests};
use serde_json::{Value, json};

const OLD: &str = "2020-01-01T00:00:00Z";
const YOUNG: &str = "2999-01-01T00:00:00Z";

fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

/// Returns the wheel of a version. A different `marker` makes different bytes.
fn content(project: &str, version: &str, marker: &str) -> Vec<u8> {
    wheel::wheel(project, version, &format!("Keywords: {marker}\n"))
}

/// Offers a project's page with these versions and upload times, and the files. The responses for
/// the files have no date.
fn lay(upstream: &Upstream, project: &str, versions: &[(&str, &str)], marker: &str) {
    let files: Vec<Value> = versions
        .iter()
        .map(|(version, time)| {
            let (name, bytes) = (wheel::wheel_name(project, version), content(project, version, marker));
            let path = format!("/files/{name}");
            upstream.on(&path, Answer::ok(bytes.clone()));
            upstream.on(&format!("{path}.metadata"), Answer::ok("METADATA"));
            json!({"filename": name, "url": path, "hashes": {"sha256": digests::sha256(&bytes)},
                "upload-time": time, "core-metadata": true})
        })
        .collect();
    let page = json!({"meta": {"api-version": "1.1"}, "name": project, "files": files}).to_string();
    upstream.on(&format!("/simple/{project}/"), Answer::ok(page).header("Content-Type", SIMPLE_JSON));
}

#[track_caller]
fn get(repository: &PythonRepository, project: &str, version: &str) -> Response {
    repository.file(project, version, &wheel::wheel_name(project, version))
}

#[track_caller]
fn offers(repository: &PythonRepository, project: &str, versions: &[&str]) {
    let page = repository.page(project);
    assert_eq!(page["versions"], json!(versions));
    assert_eq!(page["files"].as_array().unwrap().len(), versions.len());
    let html = repository.client.get(&repository.path(&format!("simple/{project}/"))).expect(200).text();
    assert_eq!(html.matches("<a ").count(), versions.len(), "{html}");
}

fn set(server: &Server, repository: &PythonRepository, settings: &Value) {
    let path = format!("/v1/repositories/{}", repository.id);
    Api::sign_in(server).patch(&path, &json!({"settings": settings})).expect(200);
}

/// Returns the versions of a project as the API lists them.
fn versions(server: &Server, repository: &PythonRepository, project: &str) -> Vec<Value> {
    let path = format!("/v1/repositories/{}/packages/{project}/versions", repository.id);
    Api::sign_in(server).call("GET", &path).expect(200).json()["items"].as_array().unwrap().clone()
}

#[test]
fn too_young_files_are_withheld_except_for_exempt_names() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"min_release_age_s": 86_400, "metadata_ttl_s": 0});
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &settings);
    let group = PythonRepository::group(&server, "group", &[&proxy], &json!({}));
    for project in ["demo", "our-demo"] {
        lay(&upstream, project, &[("1.0", OLD), ("2.0", YOUNG)], "");
    }
    let young = wheel::wheel_name("demo", "2.0");
    for repository in [&proxy, &group] {
        offers(repository, "demo", &["1.0"]);
        get(repository, "demo", "2.0").expect(404);
        repository.file("demo", "2.0", &format!("{young}.metadata")).expect(404);
        assert_eq!(get(repository, "demo", "1.0").expect(200).body, content("demo", "1.0", ""));
    }
    assert_eq!(upstream.count(&format!("/files/{young}")), 0, "the file was not requested");
    assert_eq!(versions(&server, &proxy, "demo")[0]["published_at"], 1_577_836_800_000_u64);

    set(&server, &proxy, &json!({"min_release_age_except": ["our-*", "other"]}));
    offers(&proxy, "demo", &["1.0"]);
    offers(&group, "our-demo", &["1.0", "2.0"]);
    get(&group, "our-demo", "2.0").expect(200);
    set(&server, &proxy, &json!({"min_release_age_except": ["demo"]}));
    offers(&proxy, "demo", &["1.0", "2.0"]);
    get(&proxy, "demo", "2.0").expect(200);
    // The exemption is removed. The proxy withholds files again that it fetched under the
    // exemption.
    set(&server, &proxy, &json!({"min_release_age_except": []}));
    offers(&proxy, "demo", &["1.0"]);
    get(&proxy, "demo", "2.0").expect(404);
    get(&proxy, "our-demo", "2.0").expect(404);
    get(&proxy, "demo", "1.0").expect(200);
}

#[test]
fn the_age_of_a_file_without_an_upload_time_counts_from_its_first_sight() {
    let (clock, upstream) = (JumpingClock::new(), Upstream::start());
    let server =
        Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").clock(&clock).start();
    let settings =
        json!({"min_release_age_s": 86_400, "min_release_age_except": ["free"], "metadata_ttl_s": 0});
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &settings);
    for project in ["demo", "free"] {
        let name = wheel::wheel_name(project, "1.0");
        let page = Answer::ok(format!("<a href=\"{name}\">{name}</a>")).header("Content-Type", "text/html");
        upstream.on(&format!("/simple/{project}/"), page);
        let dated = Answer::ok(content(project, "1.0", ""));
        upstream.on(
            &format!("/simple/{project}/{name}"),
            dated.header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
        );
    }
    offers(&proxy, "demo", &[]);
    get(&proxy, "demo", "1.0").expect(404);
    offers(&proxy, "free", &["1.0"]);
    get(&proxy, "free", "1.0").expect(200);
    clock.set(86_400 + 60);
    offers(&proxy, "demo", &["1.0"]);
    get(&proxy, "demo", "1.0").expect(200);
}

#[test]
fn files_that_the_upstream_withdraws_are_withheld() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = PythonRepository::proxy(
        &server,
        "proxy",
        &upstream.url(),
        &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}),
    );
    let both = [("1.0", OLD), ("2.0", OLD)];
    lay(&upstream, "demo", &both, "");
    offers(&proxy, "demo", &["1.0", "2.0"]);
    for _ in 0..2 {
        get(&proxy, "demo", "2.0").expect(200);
    }
    lay(&upstream, "demo", &both[..1], "");
    upstream.forget(&format!("/files/{}", wheel::wheel_name("demo", "2.0")));
    offers(&proxy, "demo", &["1.0"]);
    get(&proxy, "demo", "2.0").expect(404);
    proxy.file("demo", "2.0", &format!("{}.metadata", wheel::wheel_name("demo", "2.0"))).expect(404);
    assert_eq!(versions(&server, &proxy, "demo")[0]["state"], "withdrawn");

    set(&server, &proxy, &json!({"keep_withdrawn": true}));
    offers(&proxy, "demo", &["1.0", "2.0"]);
    assert_eq!(get(&proxy, "demo", "2.0").expect(200).body, content("demo", "2.0", ""));
    set(&server, &proxy, &json!({"keep_withdrawn": false}));
    lay(&upstream, "demo", &both, "");
    offers(&proxy, "demo", &["1.0", "2.0"]);
    get(&proxy, "demo", "2.0").expect(200);
    assert_eq!(versions(&server, &proxy, "demo")[0]["state"], "");

    upstream.forget("/simple/demo/");
    proxy.ask("demo").expect(404);
    get(&proxy, "demo", "2.0").expect(404);
    set(&server, &proxy, &json!({"keep_withdrawn": true}));
    offers(&proxy, "demo", &["2.0"]);
    get(&proxy, "demo", "2.0").expect(200);
}

#[test]
fn a_hosted_name_hides_upstream_names() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &json!({}));
    let claims = json!({"kind": "hosted", "settings": {"claimed_names": ["internal"]}});
    let hosted = PythonRepository::create_as(&server, "hosted", &claims);
    let group =
        PythonRepository::group(&server, "group", &[&proxy, &hosted], &json!({"claimed_names": ["Our.*"]}));
    for project in ["own", "theirs", "our-next", "internal"] {
        lay(&upstream, project, &[("99.0", OLD)], "");
    }
    let name = wheel::wheel_name("own", "1.0");
    hosted.publish("own", "1.0", &name, &content("own", "1.0", "ours")).expect(200);
    offers(&group, "own", &["1.0"]);
    get(&group, "own", "99.0").expect(404);
    assert_eq!(get(&group, "own", "1.0").expect(200).body, content("own", "1.0", "ours"));
    for claimed in ["our-next", "internal"] {
        group.ask(claimed).expect(404);
        get(&group, claimed, "99.0").expect(404);
    }
    assert!(upstream.requests().is_empty(), "the upstream got no request: {:?}", upstream.requests());

    offers(&group, "theirs", &["99.0"]);
    get(&group, "theirs", "99.0").expect(200);
    let list = Request::new("GET", &group.path("simple/")).header("Accept", SIMPLE_JSON);
    let list = group.client.send(list).expect(200).json();
    assert_eq!(list["projects"], json!([{"name": "own"}, {"name": "theirs"}]));

    upstream.down(true);
    offers(&group, "own", &["1.0"]);
    group.ask("unheard-of").expect(502);
    let upload = group.publish("own", "2.0", &name, b"").expect(405);
    assert_eq!(upload.field("code"), "writes_not_permitted_on_group");
}

#[test]
fn the_first_member_with_a_file_serves_it() {
    let (server, upstreams) = (server(), [Upstream::start(), Upstream::start()]);
    let proxies = [0, 1].map(|number| {
        PythonRepository::proxy(&server, &format!("p{number}"), &upstreams[number].url(), &json!({}))
    });
    lay(&upstreams[0], "demo", &[("1.0", OLD), ("1.1", OLD)], "first");
    lay(&upstreams[1], "demo", &[("1.0", OLD), ("2.0", OLD)], "second");
    for (order, marker, name) in [([0, 1], "first", "ahead"), ([1, 0], "second", "behind")] {
        let members = order.map(|number| &proxies[number]);
        let group = PythonRepository::group(&server, name, &members, &json!({}));
        offers(&group, "demo", &["1.0", "1.1", "2.0"]);
        let bytes = content("demo", "1.0", marker);
        assert_eq!(group.page("demo")["files"][0]["hashes"]["sha256"], digests::sha256(&bytes));
        assert_eq!(get(&group, "demo", "1.0").expect(200).body, bytes);
        assert_eq!(get(&group, "demo", "1.1").expect(200).body, content("demo", "1.1", "first"));
        assert_eq!(get(&group, "demo", "2.0").expect(200).body, content("demo", "2.0", "second"));
    }
}

#[test]
fn a_group_shows_only_members_that_the_credential_may_read() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &json!({}));
    let hosted = PythonRepository::create(&server, "hosted");
    let group = PythonRepository::group(&server, "group", &[&hosted, &proxy], &json!({}));
    hosted.publish("own", "1.0", &wheel::wheel_name("own", "1.0"), &content("own", "1.0", "")).expect(200);
    lay(&upstream, "theirs", &[("1.0", OLD)], "");
    let api = Api::sign_in(&server);
    let partly = group.with_token(&server, api.create_token(&[&group.id, &proxy.id], &["read"], None));
    offers(&partly, "theirs", &["1.0"]);
    get(&partly, "own", "1.0").expect(404);
    let outside = group.with_token(&server, api.create_token(&[&hosted.id, &proxy.id], &["read"], None));
    outside.ask("theirs").expect(403);
}
