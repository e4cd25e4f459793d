//! The list `GET /repositories/`. It contains the repositories and the actions that the caller's
//! credential permits. A caller without a credential gets no list.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

const LIST: &str = "/repositories/";

/// Creates a repository of this format and kind and returns its id.
fn create(api: &Api, name: &str, format: &str, kind: &str, settings: &Value) -> String {
    let mut body = json!({"name": name, "format": format, "kind": kind, "settings": settings});
    if kind == "proxy" {
        body["upstream"] = json!({"url": "https://upstream.example/"});
    }
    api.post("/v1/repositories", &body).expect(201).field("id")
}

/// Returns each listed name with its actions, as `name: read publish`.
fn listed(client: &Client, query: &str) -> Vec<String> {
    let page = client.get(&format!("{LIST}{query}")).expect(200).json();
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let actions = item["actions"].as_array().unwrap().iter();
            let actions: Vec<&str> = actions.map(|action| action.as_str().unwrap()).collect();
            format!("{}: {}", item["name"].as_str().unwrap(), actions.join(" "))
        })
        .collect()
}

fn token(api: &Api, body: Value) -> String {
    let mut body = body;
    for (name, value) in [
        ("name", json!("a test's")),
        ("expires_at", Value::Null),
        ("confirmation_token", json!(api.confirm("create_token"))),
    ] {
        body[name] = value;
    }
    api.post("/v1/tokens", &body).expect(201).field("secret")
}

#[test]
fn the_list_contains_the_repositories_and_actions_of_the_credential() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let jars = create(&api, "jars", "maven", "hosted", &json!({}));
    let mirror = create(&api, "mirror", "npm", "proxy", &json!({}));
    let images = create(&api, "images", "docker", "group", &json!({}));
    let scripts = create(&api, "scripts", "npm", "hosted", &json!({}));
    create(&api, "hidden", "python", "hosted", &json!({}));
    create(&api, "open", "python", "hosted", &json!({"public": true}));
    let all = [&jars, &mirror, &images, &scripts];

    let client_with = |secret: &str| server.anonymous().basic(OWNER, secret);
    let both = token(&api, json!({"scope": ["read", "write"], "format": "generic", "repositories": all}));
    let everything = [
        "jars: read publish delete",
        "mirror: read",
        "images: read",
        "scripts: read publish delete",
        "open: read",
    ];
    assert_eq!(listed(&client_with(&both), ""), everything);
    let bearer = server.anonymous().with("Authorization", &format!("Bearer {both}"));
    assert_eq!(listed(&bearer, ""), everything);
    let reads = token(&api, json!({"scope": ["read"], "format": "generic", "repositories": [jars]}));
    assert_eq!(listed(&client_with(&reads), ""), ["jars: read", "open: read"]);
    let writes =
        token(&api, json!({"scope": ["write"], "format": "generic", "repositories": [jars, mirror]}));
    assert_eq!(listed(&client_with(&writes), ""), ["jars: publish delete", "open: read"]);
    let npm = token(&api, json!({"scope": ["read", "write"], "format": "npm", "repositories": all}));
    assert_eq!(listed(&client_with(&npm), ""), ["scripts: read publish delete", "open: read"]);

    // Members sign in with their passwords and see the repositories that their own rights permit.
    let owner = listed(&server.anonymous().basic(OWNER, PASSWORD), "");
    assert_eq!(owner.len(), 6, "{owner:?}");
    let permissions =
        json!({"organization": [], "repositories": [{"repository": jars, "actions": ["read", "publish"]}]});
    let member = json!({"email": "some@example.com", "password": PASSWORD, "permissions": permissions});
    api.post("/v1/members", &member).expect(201);
    let member = server.anonymous().basic("some@example.com", PASSWORD);
    assert_eq!(listed(&member, ""), ["jars: read publish", "open: read"]);

    // An access key permits reading.
    let subscriber =
        api.post("/v1/subscribers", &json!({"name": "ACME", "repositories": [scripts]})).expect(201);
    let key = json!({"expires_at": null, "confirmation_token": api.confirm("manage_access_keys")});
    let path = format!("/v1/subscribers/{}/access-keys", subscriber.field("id"));
    let key = api.post(&path, &key).expect(201).field("secret");
    assert_eq!(listed(&server.anonymous().basic("anyone", &key), ""), ["scripts: read", "open: read"]);

    // These are the fields of an item and the headers of the response.
    let answer = client_with(&reads).get(LIST).expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("cache-control").is_some_and(|value| value.contains("private")));
    let item = &answer.json()["items"][0];
    let address = format!("{}/repositories/jars/", server.base_url());
    let whole = json!({
        "id": jars, "name": "jars", "format": "maven", "kind": "hosted", "connection_address": address,
        "actions": ["read"],
    });
    assert_eq!(*item, whole);
    let head = client_with(&reads).send(Request::new("HEAD", LIST)).expect(200);
    assert_eq!(head.header("content-length"), answer.header("content-length"));
    assert!(head.body.is_empty());
}

#[test]
fn the_list_is_not_served_without_a_credential() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = create(&api, "jars", "maven", "hosted", &json!({"public": true}));
    let token = api.create_token(&[&id], &["read", "write"], None);
    let good = server.anonymous().basic(OWNER, &token.secret);
    good.get(LIST).expect(200);
    let wrong = token.secret.replace("pkh_", "pkh_A");
    for client in [
        server.anonymous(),
        server.anonymous().basic(OWNER, &wrong),
        server.anonymous().basic("other@example.com", &token.secret),
        server.anonymous().basic(OWNER, "a wrong password"),
        server.anonymous().with("Authorization", "Digest x"),
    ] {
        let answer = client.get(LIST).expect(401);
        assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Basic realm=")));
        assert!(!answer.text().contains("jars"), "{}", answer.text());
    }
    // Every other path and method gets 400 or 401, even with a valid credential.
    for (method, path) in [("GET", "/repositories"), ("POST", LIST), ("DELETE", LIST)] {
        let status = good.send(Request::new(method, path)).status;
        assert!(matches!(status, 400 | 401), "{method} {path} {status}");
    }
    api.call("DELETE", &format!("/v1/tokens/{}", token.id)).expect(204);
    good.get(LIST).expect(401);
}

#[test]
fn a_long_list_is_paginated() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let names: Vec<String> = (0..7).map(|number| format!("r{number}")).collect();
    let ids: Vec<String> =
        names.iter().map(|name| create(&api, name, "maven", "hosted", &json!({}))).collect();
    let reached: Vec<&str> = ids.iter().step_by(2).map(String::as_str).collect();
    let token = api.create_token(&reached, &["read"], None);
    let client = server.anonymous().basic(OWNER, &token.secret);
    let (mut paged, mut query) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = client.get(&format!("{LIST}{query}")).expect(200).json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 3);
        paged.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => query = format!("?limit=3&after={next}"),
            None => break,
        }
    }
    assert_eq!(paged, ["r0", "r2", "r4", "r6"]);
    for query in ["?limit=0", "?limit=201", "?limit=x", "?after=x"] {
        let body = client.get(&format!("{LIST}{query}")).expect(400).json();
        assert_eq!(body["error"], "invalid_request", "{body}");
    }
}
