//! How many requests an organization and a credential may make, where an operator has set it.

use packhouse_tests::http::Response;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::json;

/// Asks until it is refused; that answer, and how many came before.
fn refused(ask: impl Fn() -> Response) -> (Response, u32) {
    let mut taken = 0;
    loop {
        let answer = ask();
        if answer.status == 429 {
            return (answer, taken);
        }
        taken += 1;
        assert!(taken < 200, "nothing is bounded: {}", answer.status);
    }
}

#[test]
fn one_credential_holds_up_nobody_else() {
    let server = Server::with().env("PACKHOUSE_LIMITS_CREDENTIAL_REQUEST_RATE", "4").start();
    let repository = MavenRepository::create(&server, "releases");
    let api = Api::sign_in(&server);
    let file = "org/example/a/1.0/a-1.0.jar";
    repository.put(file, "hello").expect(201);
    let (answer, taken) = refused(|| repository.get(file));
    assert!(taken >= 30, "those of ten seconds may come at once: {taken}");
    assert_eq!((answer.field("error").as_str(), answer.header("retry-after")), ("rate_limited", Some("1")));
    // Another credential of the same owner, and a stranger.
    let other = api.create_token(&[&repository.id], &["read"], None);
    let client = server.anonymous().basic(OWNER, &other.secret);
    client.get(&repository.path(file)).expect(200);
    server.anonymous().get(&repository.path(file)).expect(401);
    // Who shows none is counted by the address, where anybody may read.
    api.create_maven("open", &json!({"public": true}));
    let open = "/repositories/open/org/example/none.jar";
    let (answer, taken) = refused(|| server.anonymous().get(open));
    assert!(taken >= 30 && answer.field("error") == "rate_limited", "{taken}");
    client.get(&repository.path(file)).expect(200);
    // It is taken up again by itself.
    eventually("one more is taken", || (repository.get(file).status == 200).then_some(()));
    let metrics = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_rate_limited_total{of=\"credential\"}"), "{metrics}");

    let (answer, _) = refused(|| api.call("GET", "/v1/me"));
    assert_eq!((answer.field("error").as_str(), answer.header("retry-after")), ("rate_limited", Some("1")));
    let person = std::cell::RefCell::new(Person::owner(&server));
    let (page, _) = refused(|| person.borrow_mut().get("/repositories"));
    assert!(page.text().contains("Too many requests"), "{}", page.text());
}

#[test]
fn an_organization_is_bounded_with_all_of_its_credentials_and_strangers_use_up_nothing() {
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
    assert!(taken > 40, "a stranger has used it up: {taken}");
    let (answer, _) = refused(|| registry.client.get(&registry.path("none/manifests/latest")));
    assert_eq!(answer.json()["errors"][0]["code"], "TOOMANYREQUESTS");
}
