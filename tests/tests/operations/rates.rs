//! Limits for the requests of an organization and of a credential. They apply only if the operator
//! sets them.

use packhouse_tests::http::Response;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::json;

/// Sends requests until one is refused. Returns the refusal and the number of requests before it.
fn refused(ask: impl Fn() -> Response) -> (Response, u32) {
    let mut taken = 0;
    loop {
        let answer = ask();
        if answer.status == 429 {
            return (answer, taken);
        }
        taken += 1;
        assert!(taken < 200, "no limit applies: {}", answer.status);
    }
}

#[test]
fn one_credential_does_not_slow_down_others() {
    let server = Server::with().env("PACKHOUSE_LIMITS_CREDENTIAL_REQUEST_RATE", "4").start();
    let repository = MavenRepository::create(&server, "releases");
    let api = Api::sign_in(&server);
    let file = "org/example/a/1.0/a-1.0.jar";
    repository.put(file, "hello").expect(201);
    let (answer, taken) = refused(|| repository.get(file));
    assert!(taken >= 30, "a burst of ten seconds is allowed: {taken}");
    assert_eq!((answer.field("error").as_str(), answer.header("retry-after")), ("rate_limited", Some("1")));
    // Neither another credential of the same owner nor a client without a credential has reached a
    // limit.
    let other = api.create_token(&[&repository.id], &["read"], None);
    let client = server.anonymous().basic(OWNER, &other.secret);
    client.get(&repository.path(file)).expect(200);
    server.anonymous().get(&repository.path(file)).expect(401);
    // The limit for unauthenticated clients of a public repository applies to each client address.
    api.create_maven("open", &json!({"public": true}));
    let open = "/repositories/open/org/example/none.jar";
    let (answer, taken) = refused(|| server.anonymous().get(open));
    assert!(taken >= 30 && answer.field("error") == "rate_limited", "{taken}");
    client.get(&repository.path(file)).expect(200);
    // The limit allows another request after a while.
    eventually("one more request is accepted", || (repository.get(file).status == 200).then_some(()));
    let metrics = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_rate_limited_total{of=\"credential\"}"), "{metrics}");

    let (answer, _) = refused(|| api.call("GET", "/v1/me"));
    assert_eq!((answer.field("error").as_str(), answer.header("retry-after")), ("rate_limited", Some("1")));
    let person = std::cell::RefCell::new(Person::owner(&server));
    let (page, _) = refused(|| person.borrow_mut().get("/repositories"));
    assert!(page.text().contains("Too many requests"), "{}", page.text());
}

#[test]
fn an_organizations_limit_covers_all_its_credentials_but_no_unauthenticated_requests() {
    let server = Server::with().env("PACKHOUSE_LIMITS_ORGANIZATION_REQUEST_RATE", "8").start();
    let registry = ImageRepository::create(&server, "images", &json!({}));
    let repository = MavenRepository::create(&server, "releases");
    for _ in 0..100 {
        server.anonymous().get("/repositories/releases/x").expect(401);
    }
    Api::sign_in(&server).create_maven("open", &json!({"public": true}));
    for _ in 0..100 {
        server.anonymous().get("/repositories/open/org/example/none.jar").expect(404);
    }
    let (_, taken) = refused(|| repository.get("org/example/none.jar"));
    assert!(taken > 40, "an unauthenticated client has used up the limit: {taken}");
    let (answer, _) = refused(|| registry.client.get(&registry.path("none/manifests/latest")));
    assert_eq!(answer.json()["errors"][0]["code"], "TOOMANYREQUESTS");
}
