//! Tests of the API through its router, with a store in its own folder and without plugins.

use axum::body::Body;
use bytes::Bytes;
use http::{Request, StatusCode};
use packhouse_store::RepositoryId;
use serde_json::{Value, json};

use super::*;

mod access_keys;
mod browsers;
mod compression;
mod document;
mod members;
mod test_api;

use crate::endpoint::Endpoint;
use crate::operations::Right;
use test_api::*;

/// Every endpoint, from its handler's description.
fn described_endpoints() -> Vec<Endpoint> {
    let read = |mut described: Described| Endpoint::read(&mut described.paths).unwrap().0;
    endpoints().into_iter().map(read).collect()
}

#[tokio::test]
async fn every_route_is_described_and_every_description_served() {
    let api = TestApi::new().await;
    let document = api.get("", "/v1/openapi.json").await.ok(200);
    let described = document["paths"].as_object().unwrap();
    let calls = described.values().map(|item| item.as_object().unwrap().len()).sum::<usize>();
    assert_eq!(calls, described_endpoints().len());
    for Endpoint { method, path, .. } in described_endpoints() {
        assert!(FIRST_SEGMENTS.contains(&packhouse_config::addresses::first_segment(&path)), "{path}");
        assert!(described[&path][method.as_str().to_lowercase()].is_object(), "{method} {path}");
        let plain = path.replace(['{', '}'], "");
        let response = api.call("", "TRACE", &plain, Value::Null).await.is(405, "method_not_allowed");
        let allowed = response.headers["allow"].to_str().unwrap();
        assert!(allowed.split(',').any(|one| one == method.as_str()), "{method} {path}: {allowed}");
    }
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(document["paths"]["/v1/tokens/{id}/rotation"]["post"].is_object());
}

#[tokio::test]
async fn every_route_except_public_ones_checks_the_session_before_the_body() {
    let api = TestApi::new().await;
    // An endpoint for components first checks the declared media type.
    let wants_session = |route: &&Endpoint| route.right != Right::Anyone && !route.takes_component;
    for route in described_endpoints().iter().filter(wants_session) {
        let path = route.path.replace("{id}", "1").replace("{name}", "a").replace("{key}", "2");
        for session in ["", "pkh_no-session", "pka_no-session", "x"] {
            let response = api.call(session, route.method.as_str(), &path, json!({"nonsense": 1})).await;
            response.is(401, "not_signed_in");
        }
    }
}

#[tokio::test]
async fn header_fields_are_checked_first() {
    let limits = [
        ("PACKHOUSE_LIMITS_API_BODY_BYTES", "2000"),
        ("PACKHOUSE_LIMITS_API_JSON_TOKENS", "100"),
        ("PACKHOUSE_LIMITS_BODY_IDLE_MS", "1"),
    ];
    let api = TestApi::with(&limits).await;
    let send = |path: &str, kind: &str, body: Body| {
        let request = Request::builder().method("POST").uri(path).header("content-type", kind);
        api.send(request.body(body).unwrap())
    };
    // A call that needs no session; other calls check the session before they read the body.
    let post = |kind: &str, body: Body| send("/v1/sessions", kind, body);
    let json = "application/json";
    let many = || Body::from(format!("[{}]", vec!["1"; 99].join(",")));
    post(json, Body::from(vec![b' '; 2001])).await.is(413, "request_body_too_large");
    post(json, many()).await.is(413, "request_body_too_large");
    post("text/plain", many()).await.is(415, "unsupported_media_type");
    post("application/jsonp", Body::from("{}")).await.is(415, "unsupported_media_type");
    post("text/plain", Body::empty()).await.is(415, "unsupported_media_type");
    for malformed in ["", "{", "{}}", "{'a': 1}", "nul", "\u{feff}{}"] {
        post(json, Body::from(malformed)).await.is(400, "malformed_json");
    }
    let never = || Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let late = post(json, never()).await;
    assert_eq!(late.headers["connection"], "close");
    late.is(408, "request_timeout");
    for body in [Body::from("{}"), Body::from("{"), Body::from(vec![b' '; 2001]), never()] {
        send("/v1/tokens", "application/json; charset=utf-8", body).await.is(401, "not_signed_in");
    }
    send("/v1/tokens", "text/plain", never()).await.is(415, "unsupported_media_type");
}

#[tokio::test]
async fn json_that_is_nested_too_deep_is_malformed() {
    let api = TestApi::new().await;
    let deep = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    let request = Request::post("/v1/sessions").header("content-type", "application/json");
    api.send(request.body(Body::from(deep)).unwrap()).await.is(400, "malformed_json");
}

#[tokio::test]
async fn unknown_paths_and_unknown_methods_have_different_errors() {
    let api = TestApi::new().await;
    let unknown = api.get("", "/v1/nothing").await;
    assert_eq!((unknown.status, unknown.body["error"].as_str()), (404, Some("not_found")));
    let wrong = api.call("", "PUT", "/v1/tokens", json!({})).await;
    assert_eq!((wrong.status, wrong.body["error"].as_str()), (405, Some("method_not_allowed")));
    let allowed = wrong.headers["allow"].to_str().unwrap();
    assert!(allowed.contains("POST") && allowed.contains("GET"), "{allowed}");
    assert_eq!(wrong.headers["x-content-type-options"], "nosniff");
    assert!(!wrong.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_session_lasts_until_it_is_ended() {
    let api = TestApi::new().await;
    let session = api.owner().await;
    let me = api.get(&session, "/v1/me").await.ok(200);
    assert_eq!(me["email"], "owner@example.com");
    assert_eq!(me["organization"]["name"], "default");
    assert_eq!(me["permissions"]["repositories"][0]["repository"], "*");
    api.call(&session, "DELETE", "/v1/sessions/current", Value::Null).await.ok(204);
    api.get(&session, "/v1/me").await.is(401, "not_signed_in");
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_member_have_the_same_error() {
    let api = TestApi::new().await;
    let sign_in =
        |email: &str| api.call("", "POST", "/v1/sessions", json!({"email": email, "password": "wrong"}));
    let (known, unknown) = (sign_in("owner@example.com").await, sign_in("nobody@example.com").await);
    assert_eq!(known.body["message"], unknown.body["message"]);
    known.is(401, "invalid_credentials");
    unknown.is(401, "invalid_credentials");
    let extra = json!({"email": "owner@example.com", "password": PASSWORD, "is_admin": true});
    api.call("", "POST", "/v1/sessions", extra).await.is(400, "invalid_request");
}

#[tokio::test]
async fn guessing_a_password_is_delayed_but_a_session_is_not() {
    let api = TestApi::new().await;
    let session = api.owner().await;
    let wrong = json!({"email": "owner@example.com", "password": "wrong"});
    for _ in 0..6 {
        api.call("", "POST", "/v1/sessions", wrong.clone()).await.is(401, "invalid_credentials");
    }
    let right = json!({"email": "owner@example.com", "password": PASSWORD});
    let response = api.call("", "POST", "/v1/sessions", right).await.is(429, "too_many_attempts");
    assert!(response.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    api.get(&session, "/v1/me").await.ok(200);
}

#[tokio::test]
async fn a_confirmation_is_for_one_member_one_action_and_one_use() {
    let api = TestApi::new().await;
    let session = api.owner().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    let body = |token: Value| {
        json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [id], "expires_at": null,
            "confirmation_token": token})
    };
    let post = |body: Value| api.call(&session, "POST", "/v1/tokens", body);
    post(body(Value::Null)).await.is(400, "missing_confirmation_token");
    post(body(json!("pkh_x"))).await.is(401, "step_up_required");
    post(body(json!(7))).await.is(401, "step_up_required");
    let other = api.confirm(&session, "rotate_token").await;
    post(body(other)).await.is(401, "step_up_required");
    let token = api.confirm(&session, "create_token").await;
    post(body(token.clone())).await.ok(201);
    post(body(token)).await.is(401, "step_up_required");
    let wrong = json!({"action": "create_token", "password": "wrong"});
    api.call(&session, "POST", "/v1/confirmations", wrong).await.is(401, "invalid_credentials");
    let unknown = json!({"action": "sudo", "password": PASSWORD});
    api.call(&session, "POST", "/v1/confirmations", unknown).await.is(400, "invalid_request");
}

#[tokio::test]
async fn a_token_secret_is_returned_once_and_never_listed() {
    let api = TestApi::new().await;
    let session = api.owner().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    let made =
        api.create_token(&session, json!({"repositories": [id], "scope": ["write", "read"]})).await.ok(201);
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("pkh_"));
    assert_eq!((&made["state"], &made["owner"]), (&json!("active"), &json!("owner@example.com")));
    assert_eq!((&made["backing"], &made["expires_at"]), (&Value::Null, &Value::Null));
    assert_eq!(made["scope"], json!(["read", "write"]));
    let list = api.get(&session, "/v1/tokens").await.ok(200);
    assert_eq!(list["items"][0]["id"], made["id"]);
    assert!(!list.to_string().contains(secret));
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    api.call(&session, "DELETE", &path, Value::Null).await.ok(204);
    assert_eq!(api.get(&session, "/v1/tokens").await.ok(200)["items"][0]["state"], "revoked");
    api.call(&session, "DELETE", "/v1/tokens/1", Value::Null).await.is(404, "not_found");
}

#[tokio::test]
async fn a_token_reaches_only_what_its_creator_reaches() {
    let api = TestApi::new().await;
    let (mine, other) =
        (api.repository("mine", "hosted", vec![]).await, api.repository("other", "hosted", vec![]).await);
    let actions = json!([{"repository": mine.to_string(), "actions": ["read", "publish"]}]);
    api.member("dev@example.com", json!({"repositories": actions})).await;
    let session = api.sign_in("dev@example.com").await;
    let ids = |ids: &[RepositoryId]| json!({"repositories": ids.iter().map(ToString::to_string).collect::<Vec<_>>()});
    api.create_token(&session, ids(&[mine])).await.ok(201);
    api.create_token(&session, ids(&[mine, other])).await.is(403, "repo_access_denied");
    api.create_token(&session, ids(&[RepositoryId(1)])).await.is(403, "repo_access_denied");
    api.create_token(&session, json!({"repositories": ["x"]})).await.is(403, "repo_access_denied");
    let mut write = ids(&[mine]);
    write["scope"] = json!(["write"]);
    api.create_token(&session, write).await.is(403, "role_mismatch");
    let mut key = ids(&[mine]);
    key["backing"] = json!({"kind": "org"});
    key["expires_at"] = json!(packhouse_store::now_ms() + 1_000_000);
    api.create_token(&session, key.clone()).await.is(403, "service_key_forbidden");
    let owner = api.owner().await;
    let made = api.create_token(&owner, key).await.ok(201);
    assert_eq!((&made["owner"], &made["created_by"]), (&Value::Null, &json!("owner@example.com")));
    assert_eq!(made["backing"], json!({"kind": "org", "id": null}));
    assert_eq!(api.get(&owner, "/v1/tokens?backing=org").await.ok(200)["items"].as_array().unwrap().len(), 1);
    api.get(&session, "/v1/tokens?backing=org").await.is(403, "insufficient_permissions");
}

#[tokio::test]
async fn another_members_tokens_are_for_owners() {
    let api = TestApi::new().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    api.member("dev@example.com", json!({"repositories": [{"repository": "*", "actions": ["read"]}]})).await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let made = api.create_token(&owner, json!({"repositories": [id]})).await.ok(201);
    api.get(&dev, "/v1/tokens?member=owner@example.com").await.is(403, "insufficient_permissions");
    api.get(&owner, "/v1/tokens?member=%20").await.is(400, "invalid_user_id");
    for nobody in ["nobody@example.com", "%25", "%25@example.com", "_wner@example.com"] {
        api.get(&owner, &format!("/v1/tokens?member={nobody}")).await.is(404, "user_not_found");
    }
    assert_eq!(api.get(&owner, "/v1/tokens?member=dev@example.com").await.ok(200)["items"], json!([]));
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    api.call(&dev, "DELETE", &path, Value::Null).await.is(403, "insufficient_permissions");
}

#[tokio::test]
async fn a_rotation_makes_a_successor_and_ends_the_old_one() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    let made = api.create_token(&owner, json!({"repositories": [id]})).await.ok(201);
    let path = format!("/v1/tokens/{}/rotation", made["id"].as_str().unwrap());
    let rotate = async |mut body: Value| {
        body["confirmation_token"] = api.confirm(&owner, "rotate_token").await;
        api.call(&owner, "POST", &path, body).await
    };
    api.call(&owner, "POST", &path, json!({})).await.is(400, "missing_confirmation_token");
    api.call(&owner, "POST", &path, json!({"overlap_hours": 169})).await.is(400, "invalid_overlap_hours");
    api.call(&owner, "POST", &path, json!({"expires_at": 5})).await.is(400, "expires_at_in_past");
    let successor = rotate(json!({"overlap_hours": 1})).await.ok(201);
    assert_eq!(successor["replaced"]["id"], made["id"]);
    assert_ne!(successor["secret"], made["secret"]);
    assert_eq!(successor["state"], "active");
    rotate(json!({"overlap_hours": 2})).await.is(400, "overlap_exceeds_scheduled_end");
    rotate(json!({"overlap_hours": 0})).await.ok(201);
    rotate(json!({"overlap_hours": 0})).await.is(409, "token_revoked");
    let soon = packhouse_store::now_ms() + 3_600_000;
    let short = api.create_token(&owner, json!({"repositories": [id], "expires_at": soon})).await.ok(201);
    let path = format!("/v1/tokens/{}/rotation", short["id"].as_str().unwrap());
    let body = json!({"confirmation_token": api.confirm(&owner, "rotate_token").await});
    api.call(&owner, "POST", &path, body).await.is(400, "overlap_exceeds_expiry");
}

#[tokio::test]
async fn a_repository_is_changed_and_deleted_by_its_managers() {
    let api = TestApi::new().await;
    let id = api.repository("a", "hosted", vec![]).await;
    let group = api.repository("g", "group", vec![id]).await;
    let path = format!("/v1/repositories/{id}");
    api.member(
        "dev@example.com",
        json!({"repositories": [{"repository": id.to_string(), "actions": ["read"]}]}),
    )
    .await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let response = api.get(&dev, &path).await.ok(200);
    assert_eq!(response["connection_address"], "http://127.0.0.1:8080/repositories/a/");
    assert_eq!(response["settings"]["redeploy"], "deny");
    api.get(&dev, &format!("/v1/repositories/{group}")).await.is(404, "not_found");
    assert_eq!(api.get(&dev, "/v1/repositories").await.ok(200)["items"].as_array().unwrap().len(), 1);
    let patch = |session: &str, body: Value| {
        let session = session.to_owned();
        let (api, path) = (&api, &path);
        async move { api.call(&session, "PATCH", path, body).await }
    };
    patch(&dev, json!({"settings": {"public": true}})).await.is(403, "insufficient_permissions");
    patch(&owner, json!({"name": "b"})).await.is(400, "immutable_field");
    patch(&owner, json!({"settings": {"publik": true}})).await.is(400, "invalid_settings");
    patch(&owner, json!({"owner": "me"})).await.is(400, "invalid_request");
    patch(&owner, json!({"members": []})).await.is(400, "invalid_members");
    patch(&owner, json!({"upstream": {"url": "https://x.example/"}})).await.is(400, "invalid_upstream");
    let changed = patch(&owner, json!({"settings": {"public": true, "redeploy": "identical"}})).await.ok(200);
    assert_eq!(
        (&changed["settings"]["public"], &changed["settings"]["redeploy"]),
        (&json!(true), &json!("identical"))
    );
    patch(&owner, json!({"settings": {"redeploy": null}})).await.ok(200);
    assert_eq!(api.get(&owner, &path).await.ok(200)["settings"]["redeploy"], "deny");
    api.call(&dev, "DELETE", &path, Value::Null).await.is(403, "insufficient_permissions");
    api.call(&owner, "DELETE", &path, Value::Null).await.is(409, "repository_in_use");
    let group = format!("/v1/repositories/{group}");
    api.call(&owner, "DELETE", &group, Value::Null).await.ok(204);
    api.call(&owner, "DELETE", &path, Value::Null).await.ok(204);
    api.get(&owner, &path).await.is(404, "not_found");
}

#[tokio::test]
async fn packages_are_listed_only_with_read_access() {
    let api = TestApi::new().await;
    let id = api.repository("a", "hosted", vec![]).await;
    let listed = |name: &str, version: &str| {
        packhouse_store::CatalogChange::Show(packhouse_store::Version {
            name: name.to_owned(),
            version: version.to_owned(),
            state: "deprecated".to_owned(),
            properties: vec![("reason".to_owned(), "too old".to_owned())],
            ..Default::default()
        })
    };
    let catalog = vec![listed("@scope/one", "1.0"), listed("two", "1.0"), listed("two", "2.0")];
    let commit = packhouse_store::Commit { catalog, ..Default::default() };
    api.app.store.commit(id, commit).await.unwrap();
    api.member("dev@example.com", json!({"repositories": [{"repository": "*", "actions": ["publish"]}]}))
        .await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let path = format!("/v1/repositories/{id}/packages");
    let page = api.get(&owner, &format!("{path}?limit=1")).await.ok(200);
    assert_eq!((&page["items"][0]["name"], &page["next"]), (&json!("@scope/one"), &json!("@scope/one")));
    let page = api.get(&owner, &format!("{path}?after=%40scope%2Fone")).await.ok(200);
    assert_eq!((&page["items"][0]["versions"], &page["next"]), (&json!(2), &Value::Null));
    assert_eq!(api.get(&owner, &format!("{path}?q=TWO")).await.ok(200)["items"].as_array().unwrap().len(), 1);
    for wildcard in ["%25", "_", "t%25o", "*", "%5C"] {
        let found = api.get(&owner, &format!("{path}?q={wildcard}")).await.ok(200);
        assert_eq!(found["items"], json!([]), "{wildcard} stands for itself");
    }
    let versions = api.get(&owner, &format!("{path}/%40scope%2Fone/versions")).await.ok(200);
    assert_eq!(
        (&versions["items"][0]["version"], &versions["items"][0]["reason"]),
        (&json!("1.0"), &json!("too old"))
    );
    api.get(&owner, &format!("{path}/three/versions")).await.is(404, "not_found");
    api.get(&dev, &path).await.is(403, "role_mismatch");
    api.get(&owner, "/v1/repositories/1/packages").await.is(404, "not_found");
}

#[tokio::test]
async fn lists_come_in_pages() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    for number in 0..5 {
        api.repository(&format!("r{number}"), "hosted", vec![]).await;
    }
    let mut names = Vec::new();
    let mut path = "/v1/repositories?limit=2".to_owned();
    loop {
        let page = api.get(&owner, &path).await.ok(200);
        names.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/repositories?limit=2&after={next}");
    }
    assert_eq!(names, ["r0", "r1", "r2", "r3", "r4"]);
    for wrong in ["limit=0", "limit=201", "limit=x", "after=x", "sort=name", "limit=1&limit=2"] {
        api.get(&owner, &format!("/v1/repositories?{wrong}")).await.is(400, "invalid_request");
    }
}

#[tokio::test]
async fn every_change_is_in_the_audit_log() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    let made = api.create_token(&owner, json!({"repositories": [id]})).await.ok(201);
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    api.call(&owner, "DELETE", &path, Value::Null).await.ok(204);
    api.call("", "POST", "/v1/sessions", json!({"email": "owner@example.com", "password": "x"})).await;
    api.app.store.write_refusals().await.unwrap();
    let filter = packhouse_store::AuditFilter::default();
    let events = api.app.store.audit_events(api.organization, &filter, None, 10).await.unwrap();
    let actions: Vec<(&str, bool)> =
        events.iter().map(|row| (row.event.action.as_str(), row.refused.is_none())).collect();
    assert_eq!(
        actions,
        [("refused", false), ("revoke_token", true), ("create_token", true), ("sign_in", true)]
    );
}

#[tokio::test]
async fn readiness_follows_both_hosts() {
    let api = TestApi::new().await;
    api.get("", "/livez").await.ok(200);
    assert_eq!(api.get("", "/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    api.app.set_serving(true);
    api.get("", "/readyz").await.ok(200);
}
