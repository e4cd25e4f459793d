//! Rules and exceptions of policies: required rights, refused requests, and the audit log.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::{Value, json};

use super::{POLICIES, denied, except, in_an_hour, mode, paused, preview};

#[track_caller]
fn refused(answer: packhouse_tests::Response, status: u16, code: &str) -> String {
    let answer = answer.expect(status);
    assert_eq!(answer.field("error"), code, "{}", answer.text());
    answer.field("message")
}

#[test]
fn only_a_previewed_version_of_a_policy_is_enforced() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let put = |version: &str| maven.put(&format!("org/example/a/{version}/a-{version}.jar"), version);
    let id = paused(&api, "names", json!({"publish": ["acme:*"]}), json!([maven.id]));
    let path = format!("{POLICIES}/{id}");
    refused(api.patch(&path, &json!({"mode": "enforced"})), 409, "preview_required");
    put("1").expect(201);
    let previewed = preview(&api, &id);
    assert_eq!((&previewed["versions"], &previewed["denied"]), (&json!(1), &json!(1)), "{previewed}");
    assert_eq!(previewed["items"][0]["package"], "org.example:a");
    mode(&api, &id, "enforced");
    denied(&put("2"), "may not be published here");
    // The changed rule has no preview yet, so the server enforces it nowhere.
    let changed = api.patch(&path, &json!({"settings": {"publish": ["nobody:*"]}})).expect(200).json();
    assert_eq!((&changed["mode"], &changed["previewed"]), (&json!("paused"), &json!(false)));
    put("2").expect(201);
    refused(api.patch(&path, &json!({"mode": "enforced"})), 409, "preview_required");
    preview(&api, &id);
    // A change of the name alone keeps the preview valid.
    api.patch(&path, &json!({"name": "ours"})).expect(200);
    mode(&api, &id, "enforced");
    denied(&put("3"), "may not be published here");
    let elsewhere = api.patch(&path, &json!({"packages": ["other:*"]})).expect(200).json();
    assert_eq!(elsewhere["packages"], json!(["other:*"]));
    assert_eq!(preview(&api, &id)["versions"], 0);
    mode(&api, &id, "enforced");
    put("3").expect(201);
    api.call("DELETE", &path).expect(204);
    for (method, path) in [("GET", &path), ("DELETE", &path), ("GET", &format!("{path}/exceptions"))] {
        refused(api.call(method, path), 404, "not_found");
    }
}

#[test]
fn an_exception_has_a_reason_and_an_end_and_is_audited() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let id = paused(&api, "names", json!({"publish": ["acme:*"]}), json!("*"));
    preview(&api, &id);
    mode(&api, &id, "enforced");
    let of_exceptions = format!("{POLICIES}/{id}/exceptions");
    let good = json!({"repository": maven.id, "package": "org.example:*", "version": "1.*", "reason": "the first ones", "until": in_an_hour()});
    let wrong = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        let answer = api.post(&of_exceptions, &body);
        assert_eq!(answer.status, 400, "{field}: {}", answer.text());
    };
    for (field, value) in [
        ("reason", json!("")),
        ("reason", json!("a\nb")),
        ("package", json!("")),
        ("until", Value::Null),
        ("until", json!(1)),
        ("until", json!(in_an_hour() + 400 * 24 * 3_600_000)),
        ("repository", json!("12")),
        ("more", json!(1)),
    ] {
        wrong(field, value);
    }
    let made = api.post(&of_exceptions, &good).expect(201).json();
    assert_eq!(
        (&made["state"], &made["created_by"]),
        (&json!("active"), &json!(packhouse_tests::server::OWNER))
    );
    let put = |version: &str| maven.put(&format!("org/example/a/{version}/a-{version}.jar"), version);
    put("1.1").expect(201);
    denied(&put("2.0"), "may not be published here");
    let listed = api.call("GET", &of_exceptions).expect(200).json();
    assert_eq!(listed["items"], json!([made]));
    let exception = made["id"].as_str().unwrap();
    api.call("DELETE", &format!("{of_exceptions}/{exception}")).expect(204);
    refused(api.call("DELETE", &format!("{of_exceptions}/{exception}")), 404, "not_found");
    denied(&put("1.2"), "may not be published here");
    except(&api, &id, "*");
    put("1.2").expect(201);
    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).json();
    let events = events["items"].as_array().unwrap();
    for action in ["create_policy", "change_policy", "except_from_policy", "end_exception_from_policy"] {
        assert!(events.iter().any(|event| event["action"] == action), "{action}");
    }
    let audited = events.iter().find(|event| event["action"] == "except_from_policy").unwrap().to_string();
    assert!(audited.contains("seen and accepted"), "{audited}");
}

#[test]
fn the_number_of_policies_and_exceptions_is_limited() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "a", "component": "names", "settings": {}, "repositories": "*"});
    let first = api.post(POLICIES, &body).expect(201).field("id");
    for _ in 1..50 {
        api.post(POLICIES, &body).expect(201);
    }
    refused(api.post(POLICIES, &body), 409, "too_many_policies");
    for _ in 0..500 {
        except(&api, &first, "*");
    }
    let body = json!({"package": "*", "reason": "one more", "until": in_an_hour()});
    refused(api.post(&format!("{POLICIES}/{first}/exceptions"), &body), 409, "too_many_exceptions");
}

#[test]
fn an_invalid_policy_is_refused_and_only_repository_managers_list_policies() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let good =
        json!({"name": "a", "component": "licences", "settings": {"allow": ["MIT"]}, "repositories": "*"});
    let made = api.post(POLICIES, &good).expect(201).json();
    for (field, value) in good.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    let wrong = |field: &str, value: Value, words: &str| {
        let mut body = good.clone();
        body[field] = value;
        let refusal = refused(api.post(POLICIES, &body), 400, "invalid_request");
        assert!(refusal.contains(words), "{field}: {refusal}");
    };
    wrong("component", json!("weather"), "no policy weather is installed");
    wrong("component", json!("sha256:00"), "is not installed");
    wrong("settings", json!({}), "must name a licence");
    wrong("settings", json!({"alow": ["MIT"]}), "alow");
    wrong("settings", json!([]), "`settings`");
    wrong("repositories", json!(["12"]), "`repositories`");
    wrong("packages", json!([]), "`packages`");
    let path = format!("{POLICIES}/{}", made["id"].as_str().unwrap());
    refused(api.patch(&path, &json!({"mode": "on"})), 400, "invalid_request");
    let components = api.call("GET", "/v1/policy-components").expect(200).json();
    let names: Vec<&str> =
        components["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["least-age", "licences", "names", "provenance"], "{components:#}");
    assert!(components["items"][1]["settings"]["properties"]["allow"].is_object());
    let rights = json!({"organization": ["manage-members"], "repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]});
    api.post("/v1/members", &json!({"email": "m@example.com", "password": PASSWORD, "permissions": rights}))
        .expect(201);
    let member = Api::sign_in_as(&server, "m@example.com", PASSWORD);
    for (method, path) in [
        ("GET", POLICIES.to_owned()),
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/preview")),
        ("GET", format!("{path}/exceptions")),
        ("GET", "/v1/policy-components".to_owned()),
    ] {
        refused(member.call(method, &path), 403, "insufficient_permissions");
    }
}
