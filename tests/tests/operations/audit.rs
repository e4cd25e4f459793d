//! The audit log, read over the API. An event names the member who changed something, the
//! credential, the address and the request. The log counts refusals, contains no secret, and keeps
//! events for the configured time.

use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Request, Server, database};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn events(api: &Api, query: &str) -> Vec<Value> {
    let page = api.call("GET", &format!("/v1/audit-events?limit=200&{query}")).expect(200).json();
    page["items"].as_array().unwrap().clone()
}

#[test]
fn every_change_is_an_event_with_credential_address_and_request() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "told");
    let api = Api::sign_in(&server);
    let published = repository.put(FILE, "hello").expect(201);
    let deleted = repository.client.send(Request::new("DELETE", &repository.path(FILE))).expect(204);
    repository.get(FILE).expect(404);
    let revoked = api.call("DELETE", &format!("/v1/tokens/{}", repository.token.id)).expect(204);

    let token = format!("token:{}", repository.token.id);
    let path = format!("told/{FILE}");
    for (action, credential, subject, request) in [
        ("publish", Some(&token), path.as_str(), &published),
        ("delete", Some(&token), path.as_str(), &deleted),
        ("revoke_token", None, "a test's", &revoked),
    ] {
        let found = events(&api, &format!("action={action}"));
        // A plugin may delete in several commits, and each commit is an event.
        let event = found.last().unwrap_or_else(|| panic!("no {action}"));
        assert!(found.iter().all(|other| other["request_id"] == event["request_id"]), "{found:?}");
        assert_eq!(event["actor"], OWNER);
        assert_eq!(event["subject"], subject, "{action}");
        assert_eq!(event["address"], "127.0.0.1");
        assert_eq!(event["outcome"], "allowed");
        assert_eq!(event["request_id"].as_str(), request.header("x-request-id"), "{action}");
        match credential {
            Some(credential) => assert_eq!(event["credential"], credential.as_str()),
            None => assert!(event["credential"].as_str().unwrap().starts_with("session:")),
        }
    }
    let detail = &events(&api, "action=revoke_token")[0]["detail"];
    assert_eq!(detail, &json!({"token": repository.token.id}));
    let published = events(&api, "action=publish");
    assert_eq!(published.len(), 1, "{published:?}");
    let version = &published[0]["detail"]["versions"][0];
    assert_eq!(version, &json!({"name": "org.example:a", "version": "1.0"}));

    let all = events(&api, "");
    let actions: Vec<_> = all.iter().map(|event| event["action"].as_str().unwrap()).collect();
    assert!(actions.contains(&"create_repository") && actions.contains(&"create_token"), "{actions:?}");
    let times: Vec<_> =
        all.iter().map(|event| event["id"].as_str().unwrap().parse::<u64>().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer > older), "newest first");
    let text = format!("{all:?}");
    for secret in [PASSWORD, repository.token.secret.as_str(), "pkh_"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn refusals_of_a_credential_are_counted_and_those_without_one_are_not() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "guarded");
    let other = MavenRepository::create(&server, "other");
    let api = Api::sign_in(&server);
    for _ in 0..5 {
        repository.client.get(&other.path(FILE)).expect(403);
        server.anonymous().get(&repository.path(FILE)).expect(401);
        server.anonymous().basic(OWNER, "pkh_wrong").get(&repository.path(FILE)).expect(401);
    }
    let credential = format!("credential=token:{}", repository.token.id);
    // The log has one count per minute, and a minute may end while the test sends the refusals. So
    // the test adds the counts.
    let times = |query: &str| -> u64 {
        events(&api, query).iter().map(|event| event["times"].as_u64().unwrap()).sum()
    };
    assert_eq!(times(&format!("outcome=refused&{credential}")), 5);
    let unknown = events(&api, "outcome=refused&credential=");
    assert!(unknown.iter().all(|event| event["code"] == "unauthorized" && event["actor"] == ""));
    assert_eq!(times("outcome=refused&credential="), 5, "requests without a credential are not counted");
    assert_eq!(events(&api, "outcome=allowed&action=refused").len(), 0);
    assert_eq!(events(&api, "outcome=refused")[0]["request_id"], Value::Null);

    let body = json!({"email": OWNER, "password": "wrong"});
    api.post("/v1/sessions", &body).expect(401);
    let refused = events(&api, &format!("outcome=refused&actor={OWNER}"));
    assert!(refused.iter().any(|event| event["code"] == "invalid_credentials"), "{refused:?}");
}

#[test]
fn pages_and_filters() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for name in ["one", "two", "three"] {
        api.create_maven(name, &json!({}));
    }
    let page = api.call("GET", "/v1/audit-events?limit=2&action=create_repository").expect(200).json();
    let subjects = |page: &Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["subject"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(subjects(&page), ["three", "two"]);
    let next = page["next"].as_str().unwrap();
    let last = api
        .call("GET", &format!("/v1/audit-events?limit=2&action=create_repository&after={next}"))
        .expect(200)
        .json();
    assert_eq!((subjects(&last), &last["next"]), (vec!["one".to_owned()], &Value::Null));
    let at = page["items"][1]["at"].as_i64().unwrap();
    assert!(events(&api, &format!("since={at}")).len() >= 2);
    assert!(!events(&api, &format!("until={at}")).iter().any(|event| event["subject"] == "two"));
    assert_eq!(events(&api, "actor=nobody"), Vec::<Value>::new());
    for wrong in ["outcome=perhaps", "since=yesterday", "limit=0", "after=x", "who=me"] {
        let answer = api.call("GET", &format!("/v1/audit-events?{wrong}")).expect(400);
        assert_eq!(answer.field("error"), "invalid_request", "{wrong}");
    }
}

#[test]
fn counted_refusals_survive_a_stop_and_old_events_are_deleted() {
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "kept");
    server.anonymous().basic(OWNER, "pkh_wrong").get(&repository.path(FILE)).expect(401);
    server.terminate();
    server.wait();
    let old = "insert into audit_events (id, organization, at, actor, action, subject, address, allowed, detail) \
               select 1, id, 1, 'somebody', 'long_ago', '', '', 1, '{}' from organizations";
    database::sqlite(&server, old);
    server.restart();
    let api = Api::sign_in(&server);
    assert_eq!(events(&api, "outcome=refused").len(), 1);
    eventually("the old event is deleted", || events(&api, "action=long_ago").is_empty().then_some(()));
    assert_eq!(events(&api, "action=create_repository").len(), 1);
}
