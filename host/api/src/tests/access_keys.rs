//! Tests of subscribers, subscriber groups and their access keys.

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn subscriber(api: &TestApi, session: &str, repositories: &[RepositoryId]) -> String {
    let repositories: Vec<String> = repositories.iter().map(ToString::to_string).collect();
    let body = json!({"name": "ACME", "repositories": repositories});
    let made = api.call(session, "POST", "/v1/subscribers", body).await.ok(201);
    made["id"].as_str().unwrap().to_owned()
}

/// Calls an endpoint with a fresh confirmation.
async fn confirmed(api: &TestApi, session: &str, method: &str, path: &str, mut body: Value) -> TestResponse {
    body["confirmation_token"] = api.confirm(session, "manage_access_keys").await;
    api.call(session, method, path, body).await
}

async fn key(api: &TestApi, session: &str, keys: &str, expires_at: Value) -> Value {
    confirmed(api, session, "POST", keys, json!({"name": "ci", "expires_at": expires_at})).await.ok(201)
}

async fn reader(api: &TestApi) -> String {
    let permissions = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": "*", "actions": ["read"]}]});
    api.member("reader@example.com", permissions).await;
    api.sign_in("reader@example.com").await
}

#[tokio::test]
async fn subscribers_and_groups_are_created_read_changed_and_deleted() {
    let api = TestApi::new().await;
    let session = reader(&api).await;
    let a = api.repository("a", "hosted", vec![]).await.to_string();
    let b = api.repository("b", "hosted", vec![]).await.to_string();
    let body = json!({"name": "ACME", "email": "It@ACME.example", "repositories": [a]});
    let made = api.call(&session, "POST", "/v1/subscribers", body).await.ok(201);
    assert_eq!((&made["name"], &made["email"]), (&json!("ACME"), &json!("it@acme.example")));
    assert_eq!(made["repositories"], json!([a]));
    let id = made["id"].as_str().unwrap();
    let path = format!("/v1/subscribers/{id}");
    assert_eq!(api.get(&session, &path).await.ok(200), made);
    let changed = api.call(&session, "PATCH", &path, json!({"email": null})).await.ok(200);
    assert_eq!((&changed["name"], &changed["email"]), (&json!("ACME"), &Value::Null));
    let changed = api.call(&session, "PATCH", &path, json!({"repositories": [a, b]})).await.ok(200);
    assert_eq!(changed["repositories"], json!([a, b]));

    let group = json!({"name": "All", "subscribers": [id], "repositories": [b]});
    let group = api.call(&session, "POST", "/v1/subscriber-groups", group).await.ok(201);
    assert_eq!((&group["subscribers"], &group["repositories"]), (&json!([id]), &json!([b])));
    assert!(group.get("email").is_none());
    let of_group = format!("/v1/subscriber-groups/{}", group["id"].as_str().unwrap());
    assert_eq!(api.get(&session, "/v1/subscriber-groups").await.ok(200)["items"], json!([group]));
    assert_eq!(api.get(&session, "/v1/subscribers").await.ok(200)["items"], json!([changed]));
    // A subscriber is not a group.
    let mixed = format!("/v1/subscribers/{}", group["id"].as_str().unwrap());
    api.get(&session, &mixed).await.is(404, "not_found");

    api.call(&session, "DELETE", &path, Value::Null).await.ok(204);
    api.call(&session, "DELETE", &path, Value::Null).await.is(404, "not_found");
    assert_eq!(api.get(&session, &of_group).await.ok(200)["subscribers"], json!([]));
    let renamed = api.call(&session, "PATCH", &of_group, json!({"name": "None"})).await.ok(200);
    assert_eq!(renamed["name"], "None");
    api.call(&session, "DELETE", &of_group, Value::Null).await.ok(204);
}

#[tokio::test]
async fn a_body_about_a_subscriber_is_checked() {
    let api = TestApi::new().await;
    let session = reader(&api).await;
    let path = format!("/v1/subscribers/{}", subscriber(&api, &session, &[]).await);
    for (body, status, code) in [
        (json!({"name": ""}), 400, "invalid_name"),
        (json!({"name": null}), 400, "invalid_name"),
        (json!({"name": "a\u{202e}"}), 400, "invalid_name"),
        (json!({"name": "a", "email": "nobody"}), 400, "invalid_request"),
        (json!({"name": "a", "repositories": "1"}), 400, "invalid_request"),
        (json!({"name": "a", "repositories": [1]}), 400, "invalid_request"),
        (json!({"name": "a", "id": "1"}), 400, "invalid_request"),
        (json!({"name": "a", "kind": "subscriber_group"}), 400, "invalid_request"),
        (json!({"name": "a", "subscribers": []}), 400, "invalid_request"),
        (json!({"name": "a", "repositories": ["1"]}), 403, "repo_access_denied"),
        (json!({"name": "a", "repositories": ["x"]}), 403, "repo_access_denied"),
    ] {
        api.call(&session, "POST", "/v1/subscribers", body.clone()).await.is(status, code);
        api.call(&session, "PATCH", &path, body).await.is(status, code);
    }
    api.call(&session, "POST", "/v1/subscribers", json!({})).await.is(400, "invalid_name");
    let group = |subscribers: Value| json!({"name": "g", "subscribers": subscribers});
    for wrong in [json!(["1"]), json!(["x"]), json!("1"), json!([1])] {
        let response = api.call(&session, "POST", "/v1/subscriber-groups", group(wrong)).await;
        response.is(400, "invalid_request");
    }
}

#[tokio::test]
async fn nobody_can_grant_a_repository_they_may_not_read() {
    let api = TestApi::new().await;
    let (mine, other) =
        (api.repository("mine", "hosted", vec![]).await, api.repository("other", "hosted", vec![]).await);
    let permissions = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": mine.to_string(), "actions": ["read"]}]});
    api.member("dev@example.com", permissions).await;
    api.member("nobody@example.com", json!({"repositories": [{"repository": "*", "actions": ["read"]}]}))
        .await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let nobody = api.sign_in("nobody@example.com").await;
    let give = |ids: &[RepositoryId]| json!({"name": "x", "repositories": ids.iter().map(ToString::to_string).collect::<Vec<_>>()});
    api.call(&dev, "POST", "/v1/subscribers", give(&[other])).await.is(403, "repo_access_denied");
    api.call(&dev, "POST", "/v1/subscribers", give(&[mine])).await.ok(201);
    let id = subscriber(&api, &owner, &[other]).await;
    let path = format!("/v1/subscribers/{id}");
    // Repositories that it already has may stay or be removed.
    api.call(&dev, "PATCH", &path, give(&[other, mine])).await.ok(200);
    api.call(&dev, "PATCH", &path, give(&[])).await.ok(200);
    api.call(&dev, "PATCH", &path, give(&[other])).await.is(403, "repo_access_denied");
    // The caller does not get a key that reaches more than the caller may read. Joining a group
    // grants its repositories too.
    api.call(&owner, "PATCH", &path, give(&[other])).await.ok(200);
    let keys = format!("{path}/access-keys");
    let body = json!({"expires_at": null});
    confirmed(&api, &dev, "POST", &keys, body.clone()).await.is(403, "repo_access_denied");
    api.call(&owner, "PATCH", &path, give(&[mine])).await.ok(200);
    let made = confirmed(&api, &dev, "POST", &keys, body).await.ok(201);
    let group = api.call(&owner, "POST", "/v1/subscriber-groups", give(&[other])).await.ok(201);
    let group = format!("/v1/subscriber-groups/{}", group["id"].as_str().unwrap());
    let join = json!({"subscribers": [id]});
    api.call(&dev, "PATCH", &group, join.clone()).await.is(403, "repo_access_denied");
    api.call(&owner, "PATCH", &group, join.clone()).await.ok(200);
    api.call(&dev, "PATCH", &group, join).await.ok(200);
    let rotation = format!("{keys}/{}/rotation", made["id"].as_str().unwrap());
    confirmed(&api, &dev, "POST", &rotation, json!({})).await.is(403, "repo_access_denied");
    // Without manage-subscribers, all operations are refused.
    for (method, path) in [
        ("GET", "/v1/subscribers"),
        ("GET", path.as_str()),
        ("GET", keys.as_str()),
        ("DELETE", path.as_str()),
    ] {
        api.call(&nobody, method, path, Value::Null).await.is(403, "insufficient_permissions");
    }
    let body = json!({"expires_at": null});
    confirmed(&api, &nobody, "POST", &keys, body).await.is(403, "insufficient_permissions");
}

#[tokio::test]
async fn a_call_about_an_access_key_is_checked_in_order() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let id = subscriber(&api, &owner, &[]).await;
    let keys = format!("/v1/subscribers/{id}/access-keys");
    let late = 253_402_300_800_000_i64;
    for (body, code) in [
        (json!({}), "missing_expires_at"),
        (json!({"name": ""}), "invalid_name"),
        (json!({"expires_at": "soon"}), "invalid_expires_at"),
        (json!({"expires_at": late}), "invalid_expires_at"),
        (json!({"expires_at": 1}), "expires_at_in_past"),
        (json!({"expires_at": null, "scope": ["write"]}), "invalid_request"),
        (json!({"expires_at": null, "owner": {"kind": "subscriber", "id": "1"}}), "invalid_request"),
    ] {
        api.call(&owner, "POST", &keys, body).await.is(400, code);
    }
    let good = json!({"expires_at": null});
    let with = |token: Value| json!({"expires_at": null, "confirmation_token": token});
    api.call(&owner, "POST", &keys, good.clone()).await.is(403, "step_up_required");
    api.call(&owner, "POST", &keys, with(Value::Null)).await.is(403, "step_up_required");
    api.call(&owner, "POST", &keys, with(json!("pkh_x"))).await.is(403, "step_up_required");
    api.call(&owner, "POST", &keys, with(json!(7))).await.is(403, "step_up_required");
    let other = api.confirm(&owner, "create_token").await;
    api.call(&owner, "POST", &keys, with(other)).await.is(403, "step_up_required");
    let nowhere = "/v1/subscribers/1/access-keys";
    confirmed(&api, &owner, "POST", nowhere, good.clone()).await.is(404, "not_found");
    let spent = api.confirm(&owner, "manage_access_keys").await;
    let made = api.call(&owner, "POST", &keys, with(spent.clone())).await.ok(201);
    api.call(&owner, "POST", &keys, with(spent)).await.is(403, "step_up_required");
    assert!(made["secret"].as_str().unwrap().starts_with("pkh_"));
    assert_eq!(made["owner"], json!({"kind": "subscriber", "id": id}));
    assert_eq!(
        (&made["state"], &made["name"], &made["expires_at"]),
        (&json!("active"), &Value::Null, &Value::Null)
    );
    let listed = api.get(&owner, &keys).await.ok(200);
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert!(!listed.to_string().contains(made["secret"].as_str().unwrap()));
    api.get(&owner, nowhere).await.is(404, "not_found");
}

#[tokio::test]
async fn an_expiry_change_needs_the_present_expiry() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&api, &owner, &[]).await);
    let soon = packhouse_store::now_ms() + DAY;
    let made = key(&api, &owner, &keys, json!(soon)).await;
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let patch = async |body: Value| confirmed(&api, &owner, "PATCH", &path, body).await;
    let to = |expires_at: Value, expected: Value| json!({"expires_at": expires_at, "expected_expires_at": expected});
    patch(json!({"expected_expires_at": soon})).await.is(400, "missing_expires_at");
    patch(to(json!(1), json!(soon))).await.is(400, "expires_at_in_past");
    patch(json!({"expires_at": null})).await.is(400, "invalid_request");
    patch(to(json!(null), json!("soon"))).await.is(400, "invalid_request");
    api.call(&owner, "PATCH", &path, to(json!(null), json!(soon))).await.is(403, "step_up_required");
    patch(to(json!(soon + 1), json!(soon - 1))).await.is(409, "access_key_changed");
    patch(to(json!(soon + 1), json!(null))).await.is(409, "access_key_changed");
    let changed = patch(to(json!(null), json!(soon))).await.ok(200);
    assert_eq!((&changed["expires_at"], &changed["state"]), (&Value::Null, &json!("active")));
    patch(to(json!(soon), json!(soon))).await.is(409, "access_key_changed");
    patch(to(json!(soon), json!(null))).await.ok(200);
    confirmed(&api, &owner, "POST", &format!("{path}/rotation"), json!({"overlap_hours": 1})).await.ok(201);
    patch(to(json!(null), json!(soon))).await.is(409, "access_key_revoked");
    // `access_key_revoked` takes precedence over `access_key_changed`.
    patch(to(json!(null), json!(5))).await.is(409, "access_key_revoked");
}

#[tokio::test]
async fn a_key_is_rotated_with_an_overlap_within_its_life() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&api, &owner, &[]).await);
    let soon = packhouse_store::now_ms() + DAY / 2;
    let made = key(&api, &owner, &keys, json!(soon)).await;
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let rotation = format!("{path}/rotation");
    let rotate = async |body: Value| confirmed(&api, &owner, "POST", &rotation, body).await;
    for hours in [json!(-1), json!(169), json!(1.5), json!("1")] {
        rotate(json!({"overlap_hours": hours})).await.is(400, "invalid_overlap_hours");
    }
    rotate(json!({"expires_at": 1})).await.is(400, "expires_at_in_past");
    api.call(&owner, "POST", &rotation, json!({})).await.is(403, "step_up_required");
    // 24 hours by default, but never past the expiry.
    let successor = rotate(json!({})).await.ok(201);
    assert_eq!(successor["replaced"], json!({"id": made["id"], "ends_at": soon}));
    assert_eq!((&successor["expires_at"], &successor["name"]), (&json!(soon), &json!("ci")));
    assert_ne!(successor["secret"], made["secret"]);
    assert_eq!(api.get(&owner, &keys).await.ok(200)["items"][0]["state"], "rotating");
    let sooner = rotate(json!({"overlap_hours": 2, "expires_at": null})).await.ok(201);
    assert_eq!(sooner["expires_at"], Value::Null);
    let response = rotate(json!({"overlap_hours": 3})).await.is(400, "overlap_exceeds_scheduled_end");
    assert!(response.body["message"].as_str().unwrap().starts_with("This access key"));
    rotate(json!({"overlap_hours": 0})).await.ok(201);
    rotate(json!({"overlap_hours": 0})).await.is(409, "access_key_revoked");
    let listed = api.get(&owner, &keys).await.ok(200);
    let states: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["revoked", "active", "active", "active"]);
}

#[tokio::test]
async fn a_key_is_revoked_and_another_owners_is_not_found() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&api, &owner, &[]).await);
    let others = format!("/v1/subscribers/{}/access-keys", subscriber(&api, &owner, &[]).await);
    let made = key(&api, &owner, &keys, Value::Null).await;
    let id = made["id"].as_str().unwrap();
    let expiry = json!({"expires_at": null, "expected_expires_at": null});
    for path in [format!("{others}/{id}"), format!("{keys}/1"), format!("{keys}/x")] {
        confirmed(&api, &owner, "DELETE", &path, json!({})).await.is(404, "access_key_not_found");
        confirmed(&api, &owner, "PATCH", &path, expiry.clone()).await.is(404, "access_key_not_found");
        let rotation = format!("{path}/rotation");
        confirmed(&api, &owner, "POST", &rotation, json!({})).await.is(404, "access_key_not_found");
    }
    let path = format!("{keys}/{id}");
    api.call(&owner, "DELETE", &path, Value::Null).await.is(403, "step_up_required");
    api.call(&owner, "DELETE", &path, json!({"force": true})).await.is(400, "invalid_request");
    // Some clients drop the body of a DELETE; then the confirmation is in a header.
    let token = api.confirm(&owner, "manage_access_keys").await;
    let request = Request::delete(&path)
        .header("authorization", format!("Bearer {owner}"))
        .header("x-confirmation-token", token.as_str().unwrap());
    api.send(request.body(Body::empty()).unwrap()).await.ok(204);
    confirmed(&api, &owner, "DELETE", &path, json!({})).await.ok(204);
    assert_eq!(api.get(&owner, &keys).await.ok(200)["items"][0]["state"], "revoked");
    confirmed(&api, &owner, "PATCH", &path, expiry).await.is(409, "access_key_revoked");
    confirmed(&api, &owner, "POST", &format!("{path}/rotation"), json!({}))
        .await
        .is(409, "access_key_revoked");
}

#[tokio::test]
async fn the_keys_of_a_group_work_like_those_of_a_subscriber() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let group = api.call(&owner, "POST", "/v1/subscriber-groups", json!({"name": "g"})).await.ok(201);
    let id = group["id"].as_str().unwrap();
    let keys = format!("/v1/subscriber-groups/{id}/access-keys");
    let made = key(&api, &owner, &keys, Value::Null).await;
    assert_eq!(made["owner"], json!({"kind": "subscriber_group", "id": id}));
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let crossed = path.replace("subscriber-groups", "subscribers");
    confirmed(&api, &owner, "DELETE", &crossed, json!({})).await.is(404, "not_found");
    let expiry = json!({"expires_at": packhouse_store::now_ms() + DAY, "expected_expires_at": null});
    confirmed(&api, &owner, "PATCH", &path, expiry).await.ok(200);
    confirmed(&api, &owner, "POST", &format!("{path}/rotation"), json!({"overlap_hours": 0})).await.ok(201);
    confirmed(&api, &owner, "DELETE", &path, json!({})).await.ok(204);
    assert_eq!(api.get(&owner, &keys).await.ok(200)["items"].as_array().unwrap().len(), 2);
}
