//! Subscribers, groups of them, and their access keys.

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1000;

async fn subscriber(world: &World, session: &str, repositories: &[RepositoryId]) -> String {
    let repositories: Vec<String> = repositories.iter().map(ToString::to_string).collect();
    let body = json!({"name": "ACME", "repositories": repositories});
    let made = world.call(session, "POST", "/v1/subscribers", body).await.ok(201);
    made["id"].as_str().unwrap().to_owned()
}

/// A call with a fresh confirmation.
async fn confirmed(world: &World, session: &str, method: &str, path: &str, mut body: Value) -> Said {
    body["confirmation_token"] = world.confirm(session, "manage_access_keys").await;
    world.call(session, method, path, body).await
}

async fn key(world: &World, session: &str, keys: &str, expires_at: Value) -> Value {
    confirmed(world, session, "POST", keys, json!({"name": "ci", "expires_at": expires_at})).await.ok(201)
}

async fn reader(world: &World) -> String {
    let permissions = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": "*", "actions": ["read"]}]});
    world.member("reader@example.com", permissions).await;
    world.sign_in("reader@example.com").await
}

#[tokio::test]
async fn subscribers_and_groups_are_made_seen_changed_and_deleted() {
    let world = World::new().await;
    let session = reader(&world).await;
    let a = world.repository("a", "hosted", vec![]).await.to_string();
    let b = world.repository("b", "hosted", vec![]).await.to_string();
    let body = json!({"name": "ACME", "email": "It@ACME.example", "repositories": [a]});
    let made = world.call(&session, "POST", "/v1/subscribers", body).await.ok(201);
    assert_eq!((&made["name"], &made["email"]), (&json!("ACME"), &json!("it@acme.example")));
    assert_eq!(made["repositories"], json!([a]));
    let id = made["id"].as_str().unwrap();
    let path = format!("/v1/subscribers/{id}");
    assert_eq!(world.get(&session, &path).await.ok(200), made);
    let changed = world.call(&session, "PATCH", &path, json!({"email": null})).await.ok(200);
    assert_eq!((&changed["name"], &changed["email"]), (&json!("ACME"), &Value::Null));
    let changed = world.call(&session, "PATCH", &path, json!({"repositories": [a, b]})).await.ok(200);
    assert_eq!(changed["repositories"], json!([a, b]));

    let group = json!({"name": "All", "subscribers": [id], "repositories": [b]});
    let group = world.call(&session, "POST", "/v1/subscriber-groups", group).await.ok(201);
    assert_eq!((&group["subscribers"], &group["repositories"]), (&json!([id]), &json!([b])));
    assert!(group.get("email").is_none());
    let of_group = format!("/v1/subscriber-groups/{}", group["id"].as_str().unwrap());
    assert_eq!(world.get(&session, "/v1/subscriber-groups").await.ok(200)["items"], json!([group]));
    assert_eq!(world.get(&session, "/v1/subscribers").await.ok(200)["items"], json!([changed]));
    // The one is not the other.
    let mixed = format!("/v1/subscribers/{}", group["id"].as_str().unwrap());
    world.get(&session, &mixed).await.is(404, "not_found");

    world.call(&session, "DELETE", &path, Value::Null).await.ok(204);
    world.call(&session, "DELETE", &path, Value::Null).await.is(404, "not_found");
    assert_eq!(world.get(&session, &of_group).await.ok(200)["subscribers"], json!([]));
    let renamed = world.call(&session, "PATCH", &of_group, json!({"name": "None"})).await.ok(200);
    assert_eq!(renamed["name"], "None");
    world.call(&session, "DELETE", &of_group, Value::Null).await.ok(204);
}

#[tokio::test]
async fn a_body_about_a_subscriber_is_judged() {
    let world = World::new().await;
    let session = reader(&world).await;
    let path = format!("/v1/subscribers/{}", subscriber(&world, &session, &[]).await);
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
        world.call(&session, "POST", "/v1/subscribers", body.clone()).await.is(status, code);
        world.call(&session, "PATCH", &path, body).await.is(status, code);
    }
    world.call(&session, "POST", "/v1/subscribers", json!({})).await.is(400, "invalid_name");
    let group = |subscribers: Value| json!({"name": "g", "subscribers": subscribers});
    for wrong in [json!(["1"]), json!(["x"]), json!("1"), json!([1])] {
        let said = world.call(&session, "POST", "/v1/subscriber-groups", group(wrong)).await;
        said.is(400, "invalid_request");
    }
}

#[tokio::test]
async fn nobody_gives_what_they_may_not_read() {
    let world = World::new().await;
    let (mine, other) =
        (world.repository("mine", "hosted", vec![]).await, world.repository("other", "hosted", vec![]).await);
    let permissions = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": mine.to_string(), "actions": ["read"]}]});
    world.member("dev@example.com", permissions).await;
    world
        .member("nobody@example.com", json!({"repositories": [{"repository": "*", "actions": ["read"]}]}))
        .await;
    let (owner, dev) = (world.owner().await, world.sign_in("dev@example.com").await);
    let nobody = world.sign_in("nobody@example.com").await;
    let give = |ids: &[RepositoryId]| json!({"name": "x", "repositories": ids.iter().map(ToString::to_string).collect::<Vec<_>>()});
    world.call(&dev, "POST", "/v1/subscribers", give(&[other])).await.is(403, "repo_access_denied");
    world.call(&dev, "POST", "/v1/subscribers", give(&[mine])).await.ok(201);
    let id = subscriber(&world, &owner, &[other]).await;
    let path = format!("/v1/subscribers/{id}");
    // What it has already may stay, and be taken.
    world.call(&dev, "PATCH", &path, give(&[other, mine])).await.ok(200);
    world.call(&dev, "PATCH", &path, give(&[])).await.ok(200);
    world.call(&dev, "PATCH", &path, give(&[other])).await.is(403, "repo_access_denied");
    // A key that reaches more than the caller may read is not shown to it, and a group gives too.
    world.call(&owner, "PATCH", &path, give(&[other])).await.ok(200);
    let keys = format!("{path}/access-keys");
    let body = json!({"expires_at": null});
    confirmed(&world, &dev, "POST", &keys, body.clone()).await.is(403, "repo_access_denied");
    world.call(&owner, "PATCH", &path, give(&[mine])).await.ok(200);
    let made = confirmed(&world, &dev, "POST", &keys, body).await.ok(201);
    let group = world.call(&owner, "POST", "/v1/subscriber-groups", give(&[other])).await.ok(201);
    let group = format!("/v1/subscriber-groups/{}", group["id"].as_str().unwrap());
    let join = json!({"subscribers": [id]});
    world.call(&dev, "PATCH", &group, join.clone()).await.is(403, "repo_access_denied");
    world.call(&owner, "PATCH", &group, join.clone()).await.ok(200);
    world.call(&dev, "PATCH", &group, join).await.ok(200);
    let rotation = format!("{keys}/{}/rotation", made["id"].as_str().unwrap());
    confirmed(&world, &dev, "POST", &rotation, json!({})).await.is(403, "repo_access_denied");
    // Without manage-subscribers nothing of it is told or done.
    for (method, path) in [
        ("GET", "/v1/subscribers"),
        ("GET", path.as_str()),
        ("GET", keys.as_str()),
        ("DELETE", path.as_str()),
    ] {
        world.call(&nobody, method, path, Value::Null).await.is(403, "insufficient_permissions");
    }
    let body = json!({"expires_at": null});
    confirmed(&world, &nobody, "POST", &keys, body).await.is(403, "insufficient_permissions");
}

#[tokio::test]
async fn an_access_key_is_judged_in_order() {
    let world = World::new().await;
    let owner = world.owner().await;
    let id = subscriber(&world, &owner, &[]).await;
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
        world.call(&owner, "POST", &keys, body).await.is(400, code);
    }
    let good = json!({"expires_at": null});
    let with = |token: Value| json!({"expires_at": null, "confirmation_token": token});
    world.call(&owner, "POST", &keys, good.clone()).await.is(403, "step_up_required");
    world.call(&owner, "POST", &keys, with(Value::Null)).await.is(403, "step_up_required");
    world.call(&owner, "POST", &keys, with(json!("pkh_x"))).await.is(403, "step_up_required");
    world.call(&owner, "POST", &keys, with(json!(7))).await.is(403, "step_up_required");
    let other = world.confirm(&owner, "create_token").await;
    world.call(&owner, "POST", &keys, with(other)).await.is(403, "step_up_required");
    let nowhere = "/v1/subscribers/1/access-keys";
    confirmed(&world, &owner, "POST", nowhere, good.clone()).await.is(404, "not_found");
    let spent = world.confirm(&owner, "manage_access_keys").await;
    let made = world.call(&owner, "POST", &keys, with(spent.clone())).await.ok(201);
    world.call(&owner, "POST", &keys, with(spent)).await.is(403, "step_up_required");
    assert!(made["secret"].as_str().unwrap().starts_with("pkh_"));
    assert_eq!(made["owner"], json!({"kind": "subscriber", "id": id}));
    assert_eq!(
        (&made["state"], &made["name"], &made["expires_at"]),
        (&json!("active"), &Value::Null, &Value::Null)
    );
    let listed = world.get(&owner, &keys).await.ok(200);
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert!(!listed.to_string().contains(made["secret"].as_str().unwrap()));
    world.get(&owner, nowhere).await.is(404, "not_found");
}

#[tokio::test]
async fn an_expiry_is_changed_by_whoever_read_it_last() {
    let world = World::new().await;
    let owner = world.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&world, &owner, &[]).await);
    let soon = packhouse_store::now_ms() + DAY;
    let made = key(&world, &owner, &keys, json!(soon)).await;
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let patch = async |body: Value| confirmed(&world, &owner, "PATCH", &path, body).await;
    let to = |expires_at: Value, expected: Value| json!({"expires_at": expires_at, "expected_expires_at": expected});
    patch(json!({"expected_expires_at": soon})).await.is(400, "missing_expires_at");
    patch(to(json!(1), json!(soon))).await.is(400, "expires_at_in_past");
    patch(json!({"expires_at": null})).await.is(400, "invalid_request");
    patch(to(json!(null), json!("soon"))).await.is(400, "invalid_request");
    world.call(&owner, "PATCH", &path, to(json!(null), json!(soon))).await.is(403, "step_up_required");
    patch(to(json!(soon + 1), json!(soon - 1))).await.is(409, "access_key_changed");
    patch(to(json!(soon + 1), json!(null))).await.is(409, "access_key_changed");
    let changed = patch(to(json!(null), json!(soon))).await.ok(200);
    assert_eq!((&changed["expires_at"], &changed["state"]), (&Value::Null, &json!("active")));
    patch(to(json!(soon), json!(soon))).await.is(409, "access_key_changed");
    patch(to(json!(soon), json!(null))).await.ok(200);
    confirmed(&world, &owner, "POST", &format!("{path}/rotation"), json!({"overlap_hours": 1})).await.ok(201);
    patch(to(json!(null), json!(soon))).await.is(409, "access_key_revoked");
    // Revoked stands before changed.
    patch(to(json!(null), json!(5))).await.is(409, "access_key_revoked");
}

#[tokio::test]
async fn a_key_is_rotated_with_an_overlap_within_its_life() {
    let world = World::new().await;
    let owner = world.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&world, &owner, &[]).await);
    let soon = packhouse_store::now_ms() + DAY / 2;
    let made = key(&world, &owner, &keys, json!(soon)).await;
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let rotation = format!("{path}/rotation");
    let rotate = async |body: Value| confirmed(&world, &owner, "POST", &rotation, body).await;
    for hours in [json!(-1), json!(169), json!(1.5), json!("1")] {
        rotate(json!({"overlap_hours": hours})).await.is(400, "invalid_overlap_hours");
    }
    rotate(json!({"expires_at": 1})).await.is(400, "expires_at_in_past");
    world.call(&owner, "POST", &rotation, json!({})).await.is(403, "step_up_required");
    // 24 hours by default, but never past the expiry.
    let successor = rotate(json!({})).await.ok(201);
    assert_eq!(successor["replaced"], json!({"id": made["id"], "ends_at": soon}));
    assert_eq!((&successor["expires_at"], &successor["name"]), (&json!(soon), &json!("ci")));
    assert_ne!(successor["secret"], made["secret"]);
    assert_eq!(world.get(&owner, &keys).await.ok(200)["items"][0]["state"], "rotating");
    let sooner = rotate(json!({"overlap_hours": 2, "expires_at": null})).await.ok(201);
    assert_eq!(sooner["expires_at"], Value::Null);
    let said = rotate(json!({"overlap_hours": 3})).await.is(400, "overlap_exceeds_scheduled_end");
    assert!(said.body["message"].as_str().unwrap().starts_with("This access key"));
    rotate(json!({"overlap_hours": 0})).await.ok(201);
    rotate(json!({"overlap_hours": 0})).await.is(409, "access_key_revoked");
    let listed = world.get(&owner, &keys).await.ok(200);
    let states: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["revoked", "active", "active", "active"]);
}

#[tokio::test]
async fn a_key_is_revoked_and_another_owners_is_not_found() {
    let world = World::new().await;
    let owner = world.owner().await;
    let keys = format!("/v1/subscribers/{}/access-keys", subscriber(&world, &owner, &[]).await);
    let others = format!("/v1/subscribers/{}/access-keys", subscriber(&world, &owner, &[]).await);
    let made = key(&world, &owner, &keys, Value::Null).await;
    let id = made["id"].as_str().unwrap();
    let expiry = json!({"expires_at": null, "expected_expires_at": null});
    for path in [format!("{others}/{id}"), format!("{keys}/1"), format!("{keys}/x")] {
        confirmed(&world, &owner, "DELETE", &path, json!({})).await.is(404, "access_key_not_found");
        confirmed(&world, &owner, "PATCH", &path, expiry.clone()).await.is(404, "access_key_not_found");
        let rotation = format!("{path}/rotation");
        confirmed(&world, &owner, "POST", &rotation, json!({})).await.is(404, "access_key_not_found");
    }
    let path = format!("{keys}/{id}");
    world.call(&owner, "DELETE", &path, Value::Null).await.is(403, "step_up_required");
    world.call(&owner, "DELETE", &path, json!({"force": true})).await.is(400, "invalid_request");
    // Some clients drop the body of a DELETE: then the confirmation is in a header.
    let token = world.confirm(&owner, "manage_access_keys").await;
    let request = Request::delete(&path)
        .header("authorization", format!("Bearer {owner}"))
        .header("x-confirmation-token", token.as_str().unwrap());
    world.send(request.body(Body::empty()).unwrap()).await.ok(204);
    confirmed(&world, &owner, "DELETE", &path, json!({})).await.ok(204);
    assert_eq!(world.get(&owner, &keys).await.ok(200)["items"][0]["state"], "revoked");
    confirmed(&world, &owner, "PATCH", &path, expiry).await.is(409, "access_key_revoked");
    confirmed(&world, &owner, "POST", &format!("{path}/rotation"), json!({}))
        .await
        .is(409, "access_key_revoked");
}

#[tokio::test]
async fn a_groups_keys_are_as_a_subscribers() {
    let world = World::new().await;
    let owner = world.owner().await;
    let group = world.call(&owner, "POST", "/v1/subscriber-groups", json!({"name": "g"})).await.ok(201);
    let id = group["id"].as_str().unwrap();
    let keys = format!("/v1/subscriber-groups/{id}/access-keys");
    let made = key(&world, &owner, &keys, Value::Null).await;
    assert_eq!(made["owner"], json!({"kind": "subscriber_group", "id": id}));
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    let crossed = path.replace("subscriber-groups", "subscribers");
    confirmed(&world, &owner, "DELETE", &crossed, json!({})).await.is(404, "not_found");
    let expiry = json!({"expires_at": packhouse_store::now_ms() + DAY, "expected_expires_at": null});
    confirmed(&world, &owner, "PATCH", &path, expiry).await.ok(200);
    confirmed(&world, &owner, "POST", &format!("{path}/rotation"), json!({"overlap_hours": 0})).await.ok(201);
    confirmed(&world, &owner, "DELETE", &path, json!({})).await.ok(204);
    assert_eq!(world.get(&owner, &keys).await.ok(200)["items"].as_array().unwrap().len(), 2);
}
