//! Forms with a choice of repositories. Each form offers only the repositories that it accepts.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

#[test]
fn forms_offer_only_repositories_that_they_accept() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let api = Api::sign_in(&server);
    let make = |body: Value| api.post("/v1/repositories", &body).expect(201).field("id");
    let one = api.create_maven("one", &json!({}));
    let script = make(json!({"name": "js", "format": "npm", "kind": "hosted"}));
    let mirror = api.create_proxy("mirror", "maven", "http://127.0.0.1:9/", &json!({}));
    let group = make(json!({"name": "all", "format": "maven", "kind": "group", "members": [one]}));
    make(json!({"name": "empty", "format": "maven", "kind": "group", "members": []}));
    let mut owner = Person::owner(&server);
    for (path, field, offered, left_out) in [
        ("/retention", "repositories", vec![&one, &script], vec![&mirror, &group]),
        ("/repositories/empty/settings", "members", vec![&one, &mirror], vec![&script, &group]),
        ("/repositories/all/settings", "members", vec![&mirror], vec![&one, &script, &group]),
        ("/repositories/new", "members", vec![&one, &mirror, &script], vec![&group]),
    ] {
        let page = owner.get(path).expect(200).text();
        let offers = |id: &str| page.contains(&format!("name=\"{field}\" value=\"{id}\""));
        assert!(offered.iter().all(|id| offers(id)), "{path} offers too little: {page}");
        assert!(!left_out.iter().any(|id| offers(id)), "{path} offers too much: {page}");
    }
    let page = owner.get("/repositories/new").expect(200).text();
    assert!(page.contains("one (maven)") && page.contains("js (npm)"), "{page}");
}
