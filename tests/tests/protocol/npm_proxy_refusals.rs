//! Limits of an npm proxy. It accepts no writes, sends no client credentials to the upstream, and
//! withholds versions that are withdrawn or too young.

#[allow(dead_code, reason = "each test uses only some of it")]
use super::npm_upstream;

use npm_upstream::{Part, YOUNG, client, offer, packument, project, proxy, server, show};
use packhouse_tests::npm::{NpmRepository, Tool};
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

/// Returns every request that would change the repository, including requests that no client sends.
fn writes() -> Vec<(&'static str, &'static str, String)> {
    let document = Part::new("lib", "2.0.0").document();
    let deprecated = json!({"name": "lib", "versions": {"1.0.0": {"deprecated": "do not"}}});
    let owners =
        json!({"_id": "lib", "_rev": "1", "maintainers": [{"name": "ann", "email": "ann@example.com"}]});
    vec![
        ("PUT", "lib", document.to_string()),
        ("PUT", "@acme%2flib", document.to_string()),
        ("PUT", "lib", deprecated.to_string()),
        ("PUT", "lib/-rev/1", owners.to_string()),
        ("PUT", "lib", "no document".to_owned()),
        ("PUT", "-/package/lib/dist-tags/next", "\"1.0.0\"".to_owned()),
        ("POST", "-/package/lib/dist-tags/next", "\"1.0.0\"".to_owned()),
        ("DELETE", "-/package/lib/dist-tags/next", String::new()),
        ("POST", "-/package/lib/access", "{}".to_owned()),
        ("DELETE", "lib/-rev/1", String::new()),
        ("DELETE", "lib/-/lib-1.0.0.tgz/-rev/1", String::new()),
        ("DELETE", "lib", String::new()),
        ("POST", "lib", "{}".to_owned()),
        ("POST", "-/stage/package/lib", "{}".to_owned()),
        ("PUT", "-/nothing/is/here", "{}".to_owned()),
        ("PUT", "", "{}".to_owned()),
        ("PATCH", "lib", "{}".to_owned()),
    ]
}

/// Returns a client with this bearer.
fn bearer(server: &Server, secret: &str) -> Client {
    server.anonymous().with("Authorization", &format!("Bearer {secret}"))
}

/// Creates an npm token for this repository.
fn npm_token(api: &Api, repository: &NpmRepository) -> String {
    let body = json!({"name": "ci", "scope": ["read", "write"], "format": "npm", "repositories": [repository.id],
        "expires_at": null, "confirmation_token": api.confirm("create_token")});
    api.post("/v1/tokens", &body).expect(201).field("secret")
}

#[test]
fn every_write_is_refused_and_not_sent_upstream() {
    let (server, upstream) = (server(), Upstream::start());
    offer(&upstream, &[Part::new("lib", "1.0.0")]);
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let (api, other) = (Api::sign_in(&server), NpmRepository::create(&server, "other"));
    let reader = api.create_token(&[&proxy.id], &["read"], None).secret;
    let npm = npm_token(&api, &proxy);
    let on_proxy = Some("writes_not_permitted_on_proxy");
    let credentials = [
        (bearer(&server, &proxy.token.secret), 405, on_proxy),
        (bearer(&server, &reader), 405, on_proxy),
        (bearer(&server, &npm), 403, Some("npm_token_not_supported_on_proxy")),
        (bearer(&server, &other.token.secret), 404, None),
        (bearer(&server, "pkh_mistyped"), 401, None),
        (server.anonymous(), 401, None),
    ];
    for (method, below, body) in writes() {
        for (client, status, code) in &credentials {
            let request = Request::new(method, &proxy.path(below)).header("Content-Type", "application/json");
            let answer = client.send(request.body(body.clone()));
            assert_eq!(answer.status, *status, "{method} {below}: {}", answer.text());
            if let Some(code) = code {
                assert_eq!((answer.field("error").as_str(), answer.field("code").as_str()), (*code, *code));
            }
        }
    }
    assert!(upstream.requests().is_empty(), "{:?}", upstream.requests());
    let read = bearer(&server, &npm).get(&proxy.path("lib")).expect(403);
    assert_eq!(read.field("code"), "npm_token_not_supported_on_proxy");
}

#[test]
fn the_api_refuses_writes_and_upstream_credentials() {
    let (server, upstream) = (server(), Upstream::start());
    let part = Part::new("lib", "1.0.0");
    offer(&upstream, std::slice::from_ref(&part));
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let api = Api::sign_in(&server);
    proxy.get(&part.path()).expect(200);
    let path = format!("/v1/repositories/{}", proxy.id);
    for below in ["packages/lib", "packages/lib/versions/1.0.0"] {
        let refused = api.call("DELETE", &format!("{path}/{below}")).expect(405);
        assert_eq!(refused.field("code"), "writes_not_permitted_on_proxy", "{below}");
    }
    let confirmed = api.confirm("set_upstream_credentials");
    let body = json!({"username": "robot", "password": "secret", "confirmation_token": confirmed});
    let refused = api.send("PUT", &format!("{path}/upstream-credentials"), &body).expect(400);
    assert_eq!(refused.field("error"), "upstream_credentials_not_supported");
    let address = upstream.url().replace("http://", "http://robot:secret@");
    let body = json!({"name": "other", "format": "npm", "kind": "proxy", "upstream": {"url": address}});
    assert_eq!(api.post("/v1/repositories", &body).status, 400, "a credential in the address is refused too");
    upstream.on("/private", Answer::new(401, "").header("WWW-Authenticate", "Basic realm=\"x\""));
    proxy.get("private").expect(404);
    assert!(upstream.requests().iter().all(|request| request.header("authorization").is_none()));
}

/// Sign-in and tokens do not change the repository, so the repository's kind does not matter.
#[test]
fn sign_in_and_tokens_work_as_in_hosted_repositories() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let login = json!({"name": "ann", "password": "a password"});
    let refused = proxy.put("-/user/org.couchdb.user:ann", &login).expect(410);
    assert_eq!(refused.field("code"), "LEGACY_NPM_LOGIN_DISABLED");
    let post = |below: &str| proxy.client.send(Request::new("POST", &proxy.path(below)).body("{}"));
    assert_eq!(post("-/npm/v1/tokens").expect(410).field("code"), "NPM_CLI_TOKEN_CREATE_DISABLED");
    assert!(post("-/v1/login").expect(200).field("doneUrl").starts_with(&proxy.url(&server)));
    proxy.get("-/npm/v1/tokens").expect(200);
    let gone = format!("-/npm/v1/tokens/token/{}", proxy.token.id);
    proxy.client.send(Request::new("DELETE", &proxy.path(&gone))).expect(200);
    // npm sends this request. The test has deleted the token. So a bearer gets 404, as for a
    // missing repository, and Basic gets 401.
    let bearer = format!("Bearer {}", proxy.token.secret);
    let whoami = Request::new("GET", &proxy.path("-/whoami")).header("Authorization", &bearer);
    server.anonymous().send(whoami).expect(404);
    proxy.get("-/whoami").expect(401);
    assert!(upstream.requests().is_empty(), "{:?}", upstream.requests());
}

#[test]
fn npm_prints_the_reason_and_its_credential_is_not_sent_upstream() {
    let (server, upstream) = (server(), Upstream::start());
    let part = Part::new("lib", "1.0.0");
    offer(&upstream, std::slice::from_ref(&part));
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let why = "A proxy repository contains only packages that it fetched; clients cannot write to it.";
    std::thread::scope(|scope| {
        for tool in [Tool::Npm10, Tool::Npm11] {
            let Some(js) = client(&server, tool, &proxy) else { continue };
            let part = &part;
            scope.spawn(move || {
                project(&js, std::slice::from_ref(part));
                js.install("project").success();
                js.package("own", &json!({"name": "own", "version": "1.0.0"}));
                for command in [
                    &["publish"][..],
                    &["dist-tag", "add", "lib@1.0.0", "next"],
                    &["deprecate", "lib@1.0.0", "do not"],
                    &["unpublish", "lib@1.0.0", "--force"],
                    &["unpublish", "lib", "--force"],
                ] {
                    let output = js.run("own", command).refused(why);
                    assert!(output.text.contains("E405"), "{tool:?} {command:?}:\n{}", output.text);
                }
            });
        }
    });
    let requests = upstream.requests();
    assert!(!requests.is_empty());
    for request in &requests {
        let sent: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        let ours = ["host", "accept", "accept-encoding", "user-agent"];
        let body = ["content-type", "content-encoding", "content-length"];
        let allowed = |name: &&str| ours.contains(name) || (request.method == "POST" && body.contains(name));
        assert!(sent.iter().all(allowed), "{} {}: {sent:?}", request.method, request.target);
        let text = format!("{request:?}");
        assert!(!text.contains(&proxy.token.secret) && !text.contains("Bearer"), "{text}");
    }
    assert!(requests.iter().all(|request| matches!(request.method.as_str(), "GET" | "POST")));
}

/// Checks the offered versions of a package in both forms of the document, and checks which
/// tarballs the proxy serves. Returns the document.
#[track_caller]
fn offers(proxy: &NpmRepository, name: &str, offered: &[&str], withheld: &[&str]) -> Value {
    let bare = name.rsplit('/').next().unwrap();
    for accept in ["application/json", "application/vnd.npm.install-v1+json"] {
        let request = Request::new("GET", &proxy.path(name)).header("Accept", accept);
        let document = proxy.client.send(request).expect(200).json();
        let numbers: Vec<&String> = document["versions"].as_object().unwrap().keys().collect();
        assert_eq!(numbers, offered, "{accept}");
        let tagged: Vec<&Value> = document["dist-tags"].as_object().unwrap().values().collect();
        assert!(tagged.iter().all(|number| offered.contains(&number.as_str().unwrap())), "{tagged:?}");
    }
    for (numbers, status) in [(offered, 200), (withheld, 404)] {
        for number in numbers {
            proxy.get(&format!("{name}/{number}")).expect(status);
            proxy.get(&format!("{name}/-/{bare}-{number}.tgz")).expect(status);
        }
    }
    proxy.get(name).json()
}

#[test]
fn a_version_that_vanishes_upstream_is_withdrawn() {
    let (server, upstream) = (server(), Upstream::start());
    let [one, two] = ["1.0.0", "2.0.0"].map(|number| Part::new("@acme/lib", number));
    let both = [one.clone(), two.clone()];
    offer(&upstream, &both);
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let api = Api::sign_in(&server);
    let set = |settings: Value| {
        api.patch(&format!("/v1/repositories/{}", proxy.id), &json!({"settings": settings})).expect(200);
    };
    let state = |number: &str| {
        let path = format!("/v1/repositories/{}/packages/@acme%2Flib/versions", proxy.id);
        let all = api.call("GET", &path).expect(200).json();
        let found = all["items"].as_array().unwrap().iter().find(|item| item["version"] == number).cloned();
        found.unwrap_or_else(|| panic!("{number} is not in {all}"))["state"].clone()
    };
    offers(&proxy, "@acme/lib", &["1.0.0", "2.0.0"], &[]);

    show(
        &upstream,
        &packument(std::slice::from_ref(&one), |part| format!("{}/{}", upstream.url(), part.path())),
    );
    offers(&proxy, "@acme/lib", &["1.0.0"], &["2.0.0"]);
    assert_eq!((state("1.0.0"), state("2.0.0")), (json!(""), json!("withdrawn")));
    let Some(js) = client(&server, Tool::Npm11, &proxy) else { return };
    project(&js, std::slice::from_ref(&one));
    js.run("project", &["install", "--no-audit"]).success();
    assert_eq!(js.installed("project", "@acme/lib").as_deref(), Some("1.0.0"));

    set(json!({"keep_withdrawn": true}));
    let document = offers(&proxy, "@acme/lib", &["1.0.0", "2.0.0"], &[]);
    assert_eq!(document["dist-tags"]["latest"], "1.0.0", "the version exists, but no tag refers to it");
    set(json!({"keep_withdrawn": false}));

    // The upstream drops the whole package and later offers it again.
    upstream.forget("/@acme%2flib");
    proxy.get("@acme/lib").expect(404);
    proxy.get(&one.path()).expect(404);
    assert_eq!(state("1.0.0"), "withdrawn");
    offer(&upstream, &both);
    offers(&proxy, "@acme/lib", &["1.0.0", "2.0.0"], &[]);
    assert_eq!((state("1.0.0"), state("2.0.0")), (json!(""), json!("")));
}

/// The upstream sends a page for people, an error or another package's document, with status 200.
/// The proxy does not withdraw versions because of this.
#[test]
fn an_invalid_packument_is_a_failure_until_the_upstream_recovers() {
    let (server, upstream) = (server(), Upstream::start());
    let part = Part::new("lib", "1.0.0");
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    let other = packument(&[Part::new("other", "1.0.0")], |part| part.path()).to_string();
    let cut = packument(std::slice::from_ref(&part), |part| part.path()).to_string();
    for nonsense in
        ["<html>out of order</html>", r#"{"error": "out of order"}"#, "{}", "[]", "", &other, &cut[..90]]
    {
        upstream.on("/lib", Answer::ok(nonsense));
        for _ in 0..2 {
            let refused = proxy.get("lib").expect(502);
            assert_eq!(refused.field("error"), "upstream_unavailable", "{nonsense}");
            proxy.get(&part.path()).expect(502);
        }
        offer(&upstream, std::slice::from_ref(&part));
        offers(&proxy, "lib", &["1.0.0"], &[]);
        let purge = format!("/v1/repositories/{}/cache?path=lib", proxy.id);
        Api::sign_in(&server).call("DELETE", &purge).expect(204);
    }
    let requests = upstream.count("/lib");
    offers(&proxy, "lib", &["1.0.0"], &[]);
    assert_eq!(upstream.count("/lib"), requests + 1, "a valid one is cached");
}

#[test]
fn too_young_npm_versions_are_withheld() {
    let (server, upstream) = (server(), Upstream::start());
    let parts = |name: &str| ["1.0.0", "2.0.0", "3.0.0"].map(|number| Part::new(name, number));
    for name in ["lib", "@acme/lib"] {
        let parts = parts(name);
        offer(&upstream, &parts);
        let mut document = packument(&parts, |part| format!("{}/{}", upstream.url(), part.path()));
        document["time"]["2.0.0"] = json!(YOUNG);
        // The third version has no publication time.
        document["time"].as_object_mut().unwrap().remove("3.0.0");
        show(&upstream, &document);
        // A file may be younger than its version, for example after a move. The proxy ignores the
        // file's date.
        let now = Answer::ok(parts[0].tarball()).header("Last-Modified", "Tue, 01 Jan 2999 00:00:00 GMT");
        upstream.on(&format!("/{}", parts[0].path()), now);
    }
    let day = json!({"min_release_age_s": 86_400, "metadata_ttl_s": 0});
    let proxy = proxy(&server, "proxy", &upstream.url(), &day);
    let api = Api::sign_in(&server);
    let mut group =
        NpmRepository::create_as(&server, "group", &json!({"kind": "group", "members": [proxy.id]}));
    group.token = api.create_token(&[&proxy.id, &group.id], &["read"], None);
    group.client = server.anonymous().basic(OWNER, &group.token.secret);
    let (old, all) = (["1.0.0"], ["1.0.0", "2.0.0", "3.0.0"]);
    for name in ["lib", "@acme/lib"] {
        let document = offers(&proxy, name, &old, &all[1..]);
        assert_eq!(document["dist-tags"]["latest"], "1.0.0");
        assert_eq!(
            document["time"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["1.0.0", "created", "modified"]
        );
        offers(&group, name, &old, &all[1..]);
    }
    assert!(
        !upstream.requests().iter().any(|request| request.target.ends_with("2.0.0.tgz")),
        "the tarball is not requested upstream"
    );

    let set = |settings: Value| {
        api.patch(&format!("/v1/repositories/{}", proxy.id), &json!({"settings": settings})).expect(200);
    };
    set(json!({"min_release_age_except": ["@acme/*"]}));
    offers(&proxy, "lib", &old, &all[1..]);
    let document = offers(&proxy, "@acme/lib", &all, &[]);
    assert!(document["time"]["3.0.0"].is_null(), "a missing time is not invented: {}", document["time"]);
    // The exemption is removed. The proxy withholds files again that it fetched under the
    // exemption.
    set(json!({"min_release_age_except": []}));
    offers(&proxy, "@acme/lib", &old, &all[1..]);
}
