//! Policies: the rights to manage them, and invalid policies. A rule deletes nothing before a
//! preview of it.

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::{Value, json};

use super::{POLICIES, enforce, named, names, policy, preview, run, runs};

const DAY: i64 = 24 * 60 * 60;

fn refused(answer: packhouse_tests::Response, status: u16, code: &str) -> String {
    let answer = answer.expect(status);
    assert_eq!(answer.field("error"), code, "{}", answer.text());
    answer.field("message")
}

#[test]
fn only_a_previewed_policy_runs() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    maven.put("org/example/a/1/a-1.jar", "a").expect(201);
    let id = policy(&api, json!([maven.id]), json!({}));
    let path = format!("{POLICIES}/{id}");
    let of_runs = format!("{path}/runs");
    let mode = |mode: &str| api.patch(&path, &json!({"mode": mode}));
    refused(mode("enforced"), 409, "preview_required");
    refused(api.call("POST", &of_runs), 409, "preview_required");
    assert_eq!(named(&preview(&api, &id)["items"]), names(&["org.example:a 1"]));
    refused(api.call("POST", &of_runs), 409, "policy_paused");
    // A changed rule needs a new preview. A changed name or limit does not.
    api.patch(&path, &json!({"name": "other", "max_deletes": 7})).expect(200);
    refused(mode("enforced"), 409, "preview_required");
    refused(api.patch(&path, &json!({"keep": {"newest": 1}, "mode": "enforced"})), 409, "preview_required");
    let details = api.call("GET", &path).expect(200).json();
    assert_eq!(
        (&details["keep"], &details["name"], &details["previewed"]),
        (&json!({}), &json!("other"), &json!(false))
    );
    preview(&api, &id);
    api.patch(&path, &json!({"name": "cleaning"})).expect(200);
    enforce(&api, &id);
    let changed = api.patch(&path, &json!({"match": {"packages": ["nothing*"]}})).expect(200).json();
    assert_eq!((&changed["mode"], &changed["match"]), (&json!("paused"), &json!({"packages": ["nothing*"]})));
    assert_eq!(preview(&api, &id)["items"], json!([]));
    enforce(&api, &id);
    assert_eq!(run(&api, &id)["deleted"], 0);
    maven.get("org/example/a/1/a-1.jar").expect(200);
    assert_eq!(mode("paused").expect(200).json()["mode"], "paused");
    // An unchanged rule can be enforced again without a new preview.
    enforce(&api, &id);
    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).json();
    let actions: Vec<&str> =
        events["items"].as_array().unwrap().iter().map(|event| event["action"].as_str().unwrap()).collect();
    for action in ["create_retention_policy", "change_retention_policy", "run_retention_policy"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
    api.call("DELETE", &path).expect(204);
    for (method, path) in [("GET", &path), ("DELETE", &path), ("GET", &of_runs), ("POST", &of_runs)] {
        refused(api.call(method, path), 404, "not_found");
    }
    refused(api.call("POST", &format!("{path}/preview")), 404, "not_found");
    refused(api.patch(&path, &json!({"mode": "paused"})), 404, "not_found");
    assert_eq!(api.call("GET", POLICIES).expect(200).json()["items"], json!([]));
}

#[test]
fn invalid_policies_are_refused_and_only_repository_managers_see_policies() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let good = json!({"name": "old", "repositories": "*", "match": {"packages": ["a*"], "versions": ["*"], "tagged": true, "prerelease": false},
        "delete": {"published_before_days": 30, "not_downloaded_days": 7}, "keep": {"newest": 3, "versions": ["v*"]}, "max_deletes": 10});
    let made = api.post(POLICIES, &good).expect(201).json();
    for (field, value) in good.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    let wrong = |field: &str, value: Value, code: &str| {
        let mut body = good.clone();
        body[field] = value;
        refused(api.post(POLICIES, &body), 400, code)
    };
    wrong("name", json!(""), "invalid_name");
    for (field, value) in [
        ("repositories", json!("all")),
        ("repositories", json!(["12"])),
        ("repositories", json!([])),
        ("match", json!({"packages": [7]})),
        ("match", json!({"unknown": true})),
        ("delete", json!({})),
        ("delete", json!({"published_before_days": -1})),
        ("keep", json!({"newest": 1.5})),
        ("max_deletes", json!(0)),
        ("unknown", json!(1)),
    ] {
        assert!(wrong(field, value.clone(), "invalid_request").contains(field), "{field} {value}");
    }
    let group = api
        .post("/v1/repositories", &json!({"name": "all", "format": "maven", "kind": "group", "members": []}))
        .expect(201);
    wrong("repositories", json!([group.field("id")]), "invalid_request");
    refused(
        api.patch(&format!("{POLICIES}/{}", made["id"].as_str().unwrap()), &json!({"mode": "on"})),
        400,
        "invalid_request",
    );
    let rights = json!({"organization": ["manage-members"], "repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]});
    api.post("/v1/members", &json!({"email": "m@example.com", "password": PASSWORD, "permissions": rights}))
        .expect(201);
    let member = Api::sign_in_as(&server, "m@example.com", PASSWORD);
    let path = format!("{POLICIES}/{}", made["id"].as_str().unwrap());
    for (method, path) in [
        ("GET", POLICIES.to_owned()),
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/preview")),
        ("POST", format!("{path}/runs")),
        ("GET", format!("{path}/runs")),
    ] {
        refused(member.call(method, &path), 403, "insufficient_permissions");
    }
    refused(member.post(POLICIES, &good), 403, "insufficient_permissions");
    refused(member.patch(&path, &json!({"mode": "paused"})), 403, "insufficient_permissions");
    // The list is paginated, and the limit is a hundred policies.
    for _ in 1..100 {
        api.post(POLICIES, &good).expect(201);
    }
    refused(api.post(POLICIES, &good), 409, "too_many_policies");
    let first = api.call("GET", &format!("{POLICIES}?limit=60")).expect(200).json();
    let next = first["next"].as_str().unwrap();
    let rest = api.call("GET", &format!("{POLICIES}?limit=60&after={next}")).expect(200).json();
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (40, &Value::Null));
}

#[test]
fn ages_are_counted_in_days_and_downloads_delay_deletion() {
    let clock = JumpingClock::new();
    let server = clock
        .environment()
        .into_iter()
        .fold(Server::with(), |server, (name, value)| server.env(name, &value))
        .start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let jar = |version: &str| format!("org/example/a/{version}/a-{version}.jar");
    maven.put(&jar("1"), "one").expect(201);
    maven.put(&jar("2"), "two").expect(201);
    let old = policy(&api, json!("*"), json!({"delete": {"published_before_days": 10}}));
    let unused = policy(&api, json!([maven.id]), json!({"delete": {"not_downloaded_days": 10}}));
    let both = policy(
        &api,
        json!([maven.id]),
        json!({"delete": {"published_before_days": 5, "not_downloaded_days": 10}, "keep": {"newest": 0}}),
    );
    let matched = |id: &str| named(&preview(&api, id)["items"]);
    for id in [&old, &unused, &both] {
        assert_eq!(matched(id), names(&[]));
    }
    // The owner's session expires while the clock moves on, so the test signs in again.
    clock.set(9 * DAY);
    let api = Api::sign_in(&server);
    maven.put(&jar("3"), "three").expect(201);
    maven.get(&jar("1")).expect(200);
    packhouse_tests::server::eventually("the download is counted", || {
        let path = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1", maven.id);
        api.call("GET", &path).expect(200).json()["last_downloaded_at"].as_i64()
    });
    clock.set(12 * DAY);
    let api = Api::sign_in(&server);
    let matched = |id: &str| named(&preview(&api, id)["items"]);
    assert_eq!(matched(&old), names(&["org.example:a 1", "org.example:a 2"]));
    assert_eq!(matched(&unused), names(&["org.example:a 2"]));
    assert_eq!(matched(&both), names(&["org.example:a 2"]));
    // The server runs an enforced policy every hour.
    enforce(&api, &both);
    assert_eq!(runs(&api, &both), Vec::<Value>::new());
    clock.set(12 * DAY + 3_700);
    let done = packhouse_tests::server::eventually("it runs by itself", || {
        runs(&api, &both).into_iter().find(|run| run["ended_at"].is_i64())
    });
    assert_eq!((&done["deleted"], &done["error"]), (&json!(1), &Value::Null));
    maven.get(&jar("2")).expect(404);
    maven.get(&jar("1")).expect(200);
}
