//! API calls about trusted publishers: permissions, and errors in request bodies.

use super::World;
use packhouse_tests::http::Response;
use packhouse_tests::person::Person;
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request};
use serde_json::{Value, json};

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

#[test]
fn a_publisher_is_judged_field_by_field() {
    let world = World::start();
    let repository = world.repository("python", "wheels");
    let try_it = |name: &str, value: Value| world.try_trust(&json!({"repository": repository, name: value}));
    for provider in [json!("bitbucket"), json!(1), Value::Null] {
        is(&try_it("provider", provider), 400, "invalid_provider");
    }
    for claims in [
        json!({}),
        json!("x"),
        json!({"repository_owner": "o", "repository": "r", "workflow": "w.yml", "ref": "x"}),
        Value::Null,
    ] {
        is(&try_it("claims", claims), 400, "invalid_claims");
    }
    for packages in [json!([]), json!("*"), json!([1]), json!([""]), Value::Null] {
        is(&try_it("packages", packages), 400, "invalid_packages");
    }
    for scope in [json!([]), json!(["admin"]), Value::Null] {
        is(&try_it("scope", scope), 400, "invalid_scope");
    }
    for issuer in
        ["", "x", "ftp://127.0.0.1", "http://10.1.2.3", "http://u:p@127.0.0.1", "https://a.example/?x"]
    {
        is(&try_it("issuer", json!(issuer)), 400, "invalid_issuer");
    }
    let body = json!({"repository": repository, "provider": "oidc", "issuer": null, "claims": {"sub": "x"}});
    is(&world.try_trust(&body), 400, "invalid_issuer");
    is(&try_it("more", json!(1)), 400, "invalid_request");
    is(&world.try_trust(&json!({"repository": "12345"})), 404, "not_found");

    // If a request names no issuer, the API uses the issuer of the public service.
    for (provider, issuer, claims) in [
        (
            "github",
            "https://token.actions.githubusercontent.com",
            json!({"repository_owner": "o", "repository": "r", "workflow": "w.yml"}),
        ),
        (
            "gitlab",
            "https://gitlab.com",
            json!({"namespace": "a/b", "project": "p", "workflow": ".gitlab-ci.yml"}),
        ),
    ] {
        let body = json!({"repository": repository, "provider": provider, "issuer": null, "claims": claims});
        let made = world.try_trust(&body).expect(201).json();
        assert_eq!((&made["issuer"], &made["claims"]), (&json!(issuer), &claims));
        assert_eq!((&made["repository"], &made["packages"]), (&json!(repository), &json!(["*"])));
        assert_eq!((&made["scope"], &made["owner_id"]), (&json!(["read", "write"]), &Value::Null));
        let path = format!("/v1/trusted-publishers/{}", made["id"].as_str().unwrap());
        assert_eq!(world.api.call("GET", &path).expect(200).json(), made);
    }
    let list = format!("/v1/trusted-publishers?repository={repository}");
    let listed = world.api.call("GET", &list).expect(200).json()["items"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2);
    let path = format!("/v1/trusted-publishers/{}", listed[0]["id"].as_str().unwrap());
    world.api.call("DELETE", &path).expect(204);
    is(&world.api.call("DELETE", &path), 404, "not_found");
    is(&world.api.call("GET", &path), 404, "not_found");
    assert_eq!(world.events("create_trusted_publisher").len(), 2);
}

#[test]
fn the_number_of_publishers_is_bounded() {
    let world = World::start();
    let repository = world.repository("generic", "files");
    for _ in 0..200 {
        world.trust(&repository, &json!({}));
    }
    is(&world.try_trust(&json!({"repository": repository})), 409, "too_many_publishers");
}

#[test]
fn publishers_need_the_right_to_manage_repositories_and_to_publish() {
    let world = World::start();
    let repository = world.repository("python", "wheels");
    let body = json!({
        "repository": repository, "provider": "github", "packages": ["*"], "scope": ["write"],
        "claims": {"repository_owner": "o", "repository": "r", "workflow": "w.yml"},
    });
    let person = |email: &str, organization: &[&str], actions: &[&str]| {
        let permissions = json!({"organization": organization, "repositories": [{"repository": repository, "actions": actions}]});
        let member =
            json!({"email": email, "password": "a password of some length", "permissions": permissions});
        world.api.post("/v1/members", &member).expect(201);
        Api::sign_in_as(&world.server, email, "a password of some length")
    };
    let publishes = person("publishes@example.com", &[], &["read", "publish", "delete"]);
    let manages = person("manages@example.com", &["manage-repositories"], &["read"]);
    let both = person("both@example.com", &["manage-repositories"], &["read", "publish", "delete"]);
    is(&publishes.post("/v1/trusted-publishers", &body), 403, "insufficient_permissions");
    is(&publishes.call("GET", "/v1/trusted-publishers"), 403, "insufficient_permissions");
    is(&manages.post("/v1/trusted-publishers", &body), 403, "role_mismatch");
    let id = both.post("/v1/trusted-publishers", &body).expect(201).field("id");
    is(&publishes.call("DELETE", &format!("/v1/trusted-publishers/{id}")), 403, "insufficient_permissions");
    let anonymous = Client::new(world.server.api());
    anonymous.send(Request::new("GET", "/v1/trusted-publishers")).expect(401);
    manages.call("DELETE", &format!("/v1/trusted-publishers/{id}")).expect(204);
}

#[test]
fn an_exchange_answers_by_oauth() {
    let world = World::start();
    let repository = world.repository("python", "wheels");
    world.trust(&repository, &json!({}));
    let id_token = world.issuer.token(&world.github());
    let try_it = |name: &str, value: &str| world.exchange(&id_token, "wheels", &[(name, value)]);
    is(&try_it("grant_type", "password"), 400, "unsupported_grant_type");
    for (name, value) in [
        ("grant_type", ""),
        ("subject_token", ""),
        ("subject_token", "nonsense"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:saml2"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ("audience", "elsewhere"),
        ("resource", ""),
    ] {
        is(&try_it(name, value), 400, "invalid_request");
    }
    for resource in
        ["nonsense", "https://elsewhere.example/repositories/wheels", "https://elsewhere.example/"]
    {
        is(&try_it("resource", resource), 400, "invalid_target");
    }
    is(&world.exchange(&id_token, "nothing", &[]), 400, "invalid_target");
    let answer = Client::new(world.server.api()).send(
        Request::new("POST", "/v1/token-exchange").header("Content-Type", "application/json").body("{}"),
    );
    is(&answer, 415, "unsupported_media_type");
    let answer = world
        .exchange(&world.issuer.token(&world.github_but(&json!({"environment": "x"}))), "wheels", &[])
        .expect(400)
        .json();
    assert!(answer["error_description"].as_str().unwrap().contains("`environment`"), "{answer}");
    // No failed attempt has used up the ID token.
    let bare = format!("{}/repositories/wheels/", world.server.packages());
    let token = world.exchange(&id_token, "wheels", &[("resource", &bare)]).expect(200).field("access_token");
    world.client_as("x", &token).get("/repositories/wheels/simple/").expect(200);
}

#[test]
fn an_id_token_refused_as_a_password_gets_a_reason() {
    let world = World::start();
    let repository = world.repository("generic", "files");
    world.trust(&repository, &json!({}));
    let id_token = world.issuer.token(&world.github_but(&json!({"environment": "test"})));
    let answer = world.client_as("ci", &id_token).put("/repositories/files/a/b", b"x".to_vec());
    is(&answer, 401, "invalid_id_token");
    assert!(answer.text().contains("`environment`"), "{}", answer.text());
}

#[test]
fn people_trust_and_stop_trusting_on_a_page() {
    let world = World::start();
    world.repository("python", "wheels");
    let page = "/repositories/wheels/trusted-publishers";
    let mut owner = Person::owner(&world.server);
    assert!(owner.get("/repositories/wheels/settings").expect(200).text().contains(page));
    let wrong = [
        ("do", "create"),
        ("provider", "github"),
        ("owner", "o"),
        ("project", "r"),
        ("workflow", "w"),
        ("packages", "*"),
        ("scope", "write"),
    ];
    let refused = owner.send_form(page, &wrong).expect(400).text();
    assert!(refused.contains("must be a file in .github/workflows"), "{refused}");
    let right: Vec<(&str, &str)> = wrong
        .iter()
        .map(|(name, value)| (*name, if *name == "workflow" { "w.yml" } else { *value }))
        .collect();
    owner.confirm_form(page, &right).expect(303);
    let other = [
        ("do", "create"),
        ("provider", "oidc"),
        ("claims", "sub=system:serviceaccount:ci:builder\r\n"),
        ("issuer", world.issuer.url.as_str()),
        ("packages", "a\r\nb-*"),
        ("scope", "read"),
        ("scope", "write"),
    ];
    owner.confirm_form(page, &other).expect(303);
    let page_text = owner.get(page).expect(200).text();
    assert!(
        page_text.contains("o/r w.yml") && page_text.contains("sub=system:serviceaccount:ci:builder"),
        "{page_text}"
    );
    let listed = world.api.call("GET", "/v1/trusted-publishers").expect(200).json()["items"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(listed[1]["packages"], json!(["a", "b-*"]));
    owner.send_form(page, &[("do", "delete"), ("publisher", listed[0]["id"].as_str().unwrap())]).expect(303);
    assert!(!owner.get(page).expect(200).text().contains("o/r w.yml"));
    owner.post(page, &other).expect(403);
}

#[test]
fn a_holder_can_revoke_its_token() {
    let world = World::start();
    let (wheels, crates) = (world.repository("python", "wheels"), world.repository("cargo", "crates"));
    world.trust(&wheels, &json!({}));
    world.trust(&crates, &json!({}));
    let minted = || world.mint(&world.issuer.token(&world.github())).expect(200).field("token");
    let works = |token: &str| world.client_as("__token__", token).get("/repositories/wheels/simple/").status;
    let client = world.server.anonymous();
    let burn = |body: &Value| {
        let request = Request::new("POST", "/_/oidc/burn-token").header("Content-Type", "application/json");
        client.send(request.body(body.to_string()))
    };
    let give_back = |authorization: Option<&str>| {
        let request = Request::new("DELETE", "/api/v1/trusted_publishing/tokens");
        client.send(
            authorization
                .into_iter()
                .fold(request, |request, header_value| request.header("Authorization", header_value)),
        )
    };
    let (first, second) = (minted(), minted());
    assert_eq!((works(&first), works(&second)), (200, 200));
    for _ in 0..2 {
        assert_eq!(burn(&json!({"token": first})).expect(202).json(), json!({"message": "Accepted"}));
        assert_eq!((works(&first), works(&second)), (401, 200));
    }
    give_back(Some(&format!("Bearer {second}"))).expect(204);
    assert_eq!(works(&second), 401);
    let events = world.events("revoke_token");
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event["credential"].as_str().unwrap().starts_with("token:")));

    // For any other credential, the call gives the same answer but revokes nothing.
    let unrelated = world.api.create_token(&[&wheels], &["read"], None);
    for secret in [unrelated.secret.as_str(), "made-up", ""] {
        burn(&json!({"token": secret})).expect(202);
        assert_eq!(works(&unrelated.secret), 200, "{secret}");
    }
    for nothing in [json!({}), json!([]), json!({"token": 1})] {
        burn(&nothing).expect(422);
    }
    give_back(None).expect(401);
}

#[test]
fn a_webhook_is_notified_of_minted_and_revoked_tokens() {
    let world = World::start();
    let wheels = world.repository("python", "wheels");
    let publisher = world.trust(&wheels, &json!({}));
    let receiver = Upstream::start();
    receiver.on("/hook", Answer::ok("taken"));
    let hook = json!({"url": format!("{}/hook", receiver.url()), "events": ["token.created", "token.revoked"], "repositories": "*"});
    world.api.post("/v1/webhooks", &hook).expect(201);
    let sent_events = |count: usize| {
        eventually("the webhook is notified", || {
            let requests = receiver.requests().into_iter().filter(|request| request.target == "/hook");
            let bodies: Vec<Value> =
                requests.map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
            (bodies.len() >= count).then_some(bodies)
        })
    };
    let of = |bodies: &[Value], kind: &str| -> Vec<Value> {
        bodies.iter().filter(|body| body["type"] == kind).map(|body| body["data"].clone()).collect()
    };

    let secret = world.mint(&world.issuer.token(&world.github())).expect(200).field("token");
    let made = of(&sent_events(1), "token.created").remove(0);
    assert_eq!(made["token"]["backing"], "publisher");
    assert!(made["token"]["name"].as_str().unwrap().contains("octo-org/octo-repo"), "{made}");
    assert!(made["token"]["expires_at"].is_i64() && !made.to_string().contains(&secret), "{made}");
    let burn = Request::new("POST", "/_/oidc/burn-token").header("Content-Type", "application/json");
    world.server.anonymous().send(burn.body(json!({"token": secret}).to_string())).expect(202);
    let ended = of(&sent_events(2), "token.revoked").remove(0);
    assert_eq!(ended["token"]["id"], made["token"]["id"]);

    // Deleting the publisher ends its valid token. The webhook gets no second event about the token
    // that had already ended.
    world.mint(&world.issuer.token(&world.github())).expect(200);
    let second = of(&sent_events(3), "token.created").remove(1);
    world.api.call("DELETE", &format!("/v1/trusted-publishers/{publisher}")).expect(204);
    let ended = of(&sent_events(4), "token.revoked");
    assert_eq!((ended.len(), &ended[1]["token"]["id"]), (2, &second["token"]["id"]));
}
