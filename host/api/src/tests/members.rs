//! Tests of members, invitations and password resets: managing members, and the purpose of each
//! code.

use super::*;

const NEW: &str = "another long password";

/// Permissions in the organization, and the same actions in all repositories.
fn permissions(organization: &[&str], actions: &[&str]) -> Value {
    match actions {
        [] => json!({"organization": organization, "repositories": []}),
        _ => json!({"organization": organization, "repositories": [{"repository": "*", "actions": actions}]}),
    }
}

fn new_member(email: &str, permissions: &Value) -> Value {
    json!({"email": email, "name": "New", "password": NEW, "permissions": permissions})
}

async fn create(api: &TestApi, session: &str, email: &str, permissions: &Value) -> TestResponse {
    api.call(session, "POST", "/v1/members", new_member(email, permissions)).await
}

async fn id_of(api: &TestApi, email: &str) -> String {
    let found = api.app.store.members_by_email(email).await.unwrap();
    found.into_iter().find(|row| row.organization == api.organization).unwrap().id.to_string()
}

async fn set(api: &TestApi, session: &str, email: &str, permissions: Value) -> TestResponse {
    let path = format!("/v1/members/{}/permissions", id_of(api, email).await);
    api.call(session, "PUT", &path, json!({"permissions": permissions})).await
}

#[tokio::test]
async fn a_member_is_created_read_and_deleted() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let reads = permissions(&[], &["read"]);
    let made = create(&api, &owner, " New@Example.com", &reads).await.ok(201);
    assert_eq!((&made["email"], &made["name"]), (&json!("new@example.com"), &json!("New")));
    assert_eq!(made["permissions"], reads);
    assert!(made["created_at"].is_i64() && made.get("password").is_none());
    let path = format!("/v1/members/{}", made["id"].as_str().unwrap());
    assert_eq!(api.get(&owner, &path).await.ok(200), made);
    assert_eq!((&made["teams"], &made["effective_permissions"]), (&json!([]), &reads));
    let listed = api.get(&owner, "/v1/members").await.ok(200)["items"][1].clone();
    let fields =
        |view: &Value| ["id", "email", "name", "permissions", "active"].map(|name| view[name].clone());
    assert_eq!((fields(&listed), &listed["active"]), (fields(&made), &json!(true)));
    assert!(listed.get("teams").is_none(), "a list has no teams: {listed}");
    create(&api, &owner, "NEW@example.com", &reads).await.is(409, "user_already_exists");
    let sign_in = json!({"email": "new@example.com", "password": NEW});
    let session = api.call("", "POST", "/v1/sessions", sign_in).await.ok(201);
    let session = session["session"].as_str().unwrap();
    assert_eq!(api.get(session, &path).await.ok(200), made);
    api.get(session, "/v1/members").await.is(403, "insufficient_permissions");
    let other = format!("/v1/members/{}", id_of(&api, "owner@example.com").await);
    api.get(session, &other).await.is(403, "insufficient_permissions");
    api.call(session, "DELETE", &path, Value::Null).await.is(403, "role_mismatch");
    api.call(&owner, "DELETE", &path, Value::Null).await.ok(204);
    api.call(&owner, "DELETE", &path, Value::Null).await.is(404, "not_found");
    api.get(session, "/v1/me").await.is(401, "not_signed_in");
    for id in ["1", "x", "%00"] {
        api.get(&owner, &format!("/v1/members/{id}")).await.is(404, "not_found");
    }
}

#[tokio::test]
async fn a_body_about_a_member_has_only_valid_fields() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let good = new_member("new@example.com", &permissions(&[], &["read"]));
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    for body in [
        with("is_owner", json!(true)),
        with("id", json!("1")),
        with("organization", json!("1")),
        with("email", json!("nobody")),
        with("email", json!("a b@example.com")),
        with("email", json!(7)),
        with("password", json!("short")),
        with("password", json!("x".repeat(1025))),
        with("password", json!("pkh_looks-like-a-token")),
        with("permissions", json!({"organization": ["root"]})),
        with("permissions", json!({"organization": [], "owner": true})),
        with("permissions", json!({"repositories": [{"repository": "*", "actions": ["write"]}]})),
        with("permissions", json!({"repositories": [{"repository": "1", "actions": ["read"]}]})),
        with("permissions", json!({"repositories": [{"repository": "x", "actions": ["read"]}]})),
        with("permissions", json!(null)),
    ] {
        api.call(&owner, "POST", "/v1/members", body).await.is(400, "invalid_request");
    }
    let odd = with("name", json!("a\u{202e}b"));
    api.call(&owner, "POST", "/v1/members", odd).await.is(400, "invalid_name");
    api.call(&owner, "POST", "/v1/members", good).await.ok(201);
}

#[tokio::test]
async fn a_member_grants_only_permissions_that_the_member_holds() {
    let api = TestApi::new().await;
    let here = api.repository("here", "hosted", vec![]).await.to_string();
    let there = api.repository("there", "hosted", vec![]).await.to_string();
    let in_one = |repository: &str, actions: &[&str]| json!({"organization": [], "repositories": [{"repository": repository, "actions": actions}]});
    let mut manager = in_one(&here, &["read", "publish", "delete"]);
    manager["organization"] = json!(["manage-members"]);
    api.member("manager@example.com", manager.clone()).await;
    let session = api.sign_in("manager@example.com").await;
    let mut number = 0;
    for (wanted, granted) in [
        (permissions(&[], &[]), true),
        (in_one(&here, &["read"]), true),
        (in_one(&here, &["publish", "delete"]), true),
        (manager, true),
        (in_one(&there, &["read"]), false),
        (in_one("*", &["read"]), false),
        (permissions(&["manage-repositories"], &[]), false),
        (permissions(&["manage-owner-account"], &[]), false),
    ] {
        number += 1;
        let email = format!("m{number}@example.com");
        let invitation = json!({"email": email, "permissions": wanted});
        let invited = api.call(&session, "POST", "/v1/invitations", invitation).await;
        let made = create(&api, &session, &email, &wanted).await;
        match granted {
            true => {
                invited.ok(201);
                made.ok(201);
            }
            false => {
                invited.is(403, "role_mismatch");
                made.is(403, "role_mismatch");
            }
        }
    }
    // A member who holds more keeps their permissions and cannot be deleted.
    api.member("more@example.com", in_one(&there, &["publish"])).await;
    set(&api, &session, "more@example.com", permissions(&[], &[])).await.is(403, "role_mismatch");
    set(&api, &session, "owner@example.com", permissions(&[], &[])).await.is(403, "role_mismatch");
    let path = format!("/v1/members/{}", id_of(&api, "more@example.com").await);
    api.call(&session, "DELETE", &path, Value::Null).await.is(403, "role_mismatch");
    set(&api, &session, "m2@example.com", in_one(&there, &["read"])).await.is(403, "role_mismatch");
    let changed = set(&api, &session, "m2@example.com", in_one(&here, &["publish"])).await.ok(200);
    assert_eq!(changed["permissions"], in_one(&here, &["publish"]));
    // Without manage-members, managing anyone is refused.
    api.member("dev@example.com", permissions(&[], &["read", "publish", "delete"])).await;
    let dev = api.sign_in("dev@example.com").await;
    create(&api, &dev, "n@example.com", &permissions(&[], &[])).await.is(403, "role_mismatch");
    set(&api, &dev, "m1@example.com", permissions(&[], &[])).await.is(403, "role_mismatch");
}

#[tokio::test]
async fn a_read_only_member_manages_only_read_only_members() {
    let api = TestApi::new().await;
    api.member("reader@example.com", permissions(&["manage-members"], &["read"])).await;
    api.member("other@example.com", permissions(&[], &["read"])).await;
    api.member("dev@example.com", permissions(&[], &["read", "publish"])).await;
    let session = api.sign_in("reader@example.com").await;
    create(&api, &session, "a@example.com", &permissions(&[], &["read"])).await.ok(201);
    create(&api, &session, "b@example.com", &permissions(&[], &["publish"])).await.is(403, "role_mismatch");
    set(&api, &session, "other@example.com", permissions(&[], &[])).await.ok(200);
    set(&api, &session, "other@example.com", permissions(&[], &["delete"])).await.is(403, "role_mismatch");
    set(&api, &session, "dev@example.com", permissions(&[], &["read"])).await.is(403, "role_mismatch");
    for email in ["other@example.com", "dev@example.com"] {
        let path = format!("/v1/members/{}/password-reset", id_of(&api, email).await);
        api.call(&session, "POST", &path, Value::Null).await.is(403, "role_mismatch");
    }
}

#[tokio::test]
async fn the_last_owner_cannot_be_removed() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let path = format!("/v1/members/{}", id_of(&api, "owner@example.com").await);
    let less = permissions(&["manage-members"], &["read", "publish", "delete"]);
    set(&api, &owner, "owner@example.com", less.clone()).await.is(409, "last_owner");
    api.call(&owner, "DELETE", &path, Value::Null).await.is(409, "last_owner");
    create(&api, &owner, "second@example.com", &permissions(&["manage-owner-account"], &[])).await.ok(201);
    set(&api, &owner, "owner@example.com", less).await.ok(200);
    set(&api, &owner, "second@example.com", permissions(&[], &[])).await.is(403, "role_mismatch");
    api.get(&owner, "/v1/formats").await.is(403, "insufficient_permissions");
}

#[tokio::test]
async fn an_invitation_is_accepted_once() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let reads = permissions(&[], &["read"]);
    let invite = async |email: &str| {
        let body = json!({"email": email, "permissions": reads});
        let response = api.call(&owner, "POST", "/v1/invitations", body).await.ok(201);
        assert!(response["expires_at"].as_i64().unwrap() > packhouse_store::now_ms());
        format!("/v1/invitations/{}/accept", response["code"].as_str().unwrap())
    };
    let accept = async |path: &str, body: Value| api.call("", "POST", path, body).await;
    let good = json!({"name": "New", "password": NEW});
    let path = invite("new@example.com").await;
    accept(&path, json!({"password": NEW, "permissions": reads})).await.is(400, "invalid_request");
    accept(&path, json!({"password": "short"})).await.is(400, "invalid_request");
    let made = accept(&path, good.clone()).await.ok(201);
    assert_eq!((&made["email"], &made["permissions"]), (&json!("new@example.com"), &reads));
    accept(&path, good.clone()).await.is(404, "not_found");
    for code in ["x", "pkh_x", "%2e%2e"] {
        accept(&format!("/v1/invitations/{code}/accept"), good.clone()).await.is(404, "not_found");
    }
    let taken = invite("new@example.com").await;
    accept(&taken, good.clone()).await.is(409, "user_already_exists");
    accept(&taken, good.clone()).await.is(404, "not_found");
    // The invitations of a member end with the member.
    create(&api, &owner, "gone@example.com", &permissions(&["manage-members"], &["read"])).await.ok(201);
    let sign_in = json!({"email": "gone@example.com", "password": NEW});
    let gone = api.call("", "POST", "/v1/sessions", sign_in).await.ok(201);
    let body = json!({"email": "friend@example.com", "permissions": reads});
    let response = api.call(gone["session"].as_str().unwrap(), "POST", "/v1/invitations", body).await.ok(201);
    let path = format!("/v1/members/{}", id_of(&api, "gone@example.com").await);
    api.call(&owner, "DELETE", &path, Value::Null).await.ok(204);
    let path = format!("/v1/invitations/{}/accept", response["code"].as_str().unwrap());
    accept(&path, good).await.is(404, "not_found");
}

#[tokio::test]
async fn one_of_fifty_concurrent_acceptances_succeeds() {
    let api = TestApi::new().await;
    let owner = api.owner().await;
    let body = json!({"email": "new@example.com", "permissions": permissions(&[], &[])});
    let response = api.call(&owner, "POST", "/v1/invitations", body).await.ok(201);
    let path = format!("/v1/invitations/{}/accept", response["code"].as_str().unwrap());
    let accept = |_| api.call("", "POST", &path, json!({"password": NEW}));
    let statuses = futures::future::join_all((0..50).map(accept)).await;
    let made = statuses.iter().filter(|response| response.status == 201).count();
    let gone = statuses.iter().filter(|response| response.status == 404).count();
    assert_eq!((made, gone), (1, 49));
}

#[tokio::test]
async fn a_reset_sets_a_password_once_and_ends_sessions() {
    let api = TestApi::new().await;
    api.member("dev@example.com", permissions(&[], &["read"])).await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let path = format!("/v1/members/{}/password-reset", id_of(&api, "dev@example.com").await);
    let reset = async || {
        let response = api.call(&owner, "POST", &path, json!({})).await.ok(201);
        format!("/v1/password-resets/{}", response["reset_code"].as_str().unwrap())
    };
    let (first, second) = (reset().await, reset().await);
    api.call(&owner, "POST", &path, json!({"password": NEW})).await.is(400, "invalid_request");
    api.call(&dev, "POST", &path, Value::Null).await.is(403, "role_mismatch");
    let body = json!({"password": NEW});
    api.call("", "POST", &first, json!({"password": "short"})).await.is(400, "invalid_request");
    api.get(&dev, "/v1/me").await.ok(200);
    api.call("", "POST", &first, body.clone()).await.ok(204);
    api.get(&dev, "/v1/me").await.is(401, "not_signed_in");
    for path in [first.as_str(), second.as_str(), "/v1/password-resets/x"] {
        api.call("", "POST", path, body.clone()).await.is(404, "not_found");
    }
    let sign_in = |password: &str| {
        api.call("", "POST", "/v1/sessions", json!({"email": "dev@example.com", "password": password}))
    };
    sign_in(PASSWORD).await.is(401, "invalid_credentials");
    sign_in(NEW).await.ok(201);
}

#[tokio::test]
async fn nobody_can_reset_a_member_who_holds_more() {
    let api = TestApi::new().await;
    api.member("dev@example.com", permissions(&["manage-members"], &["read", "publish"])).await;
    api.member("equal@example.com", permissions(&[], &["publish"])).await;
    api.member("more@example.com", permissions(&[], &["delete"])).await;
    let session = api.sign_in("dev@example.com").await;
    for (email, code) in [("equal@example.com", None), ("more@example.com", Some("role_mismatch"))] {
        let path = format!("/v1/members/{}/password-reset", id_of(&api, email).await);
        let response = api.call(&session, "POST", &path, Value::Null).await;
        match code {
            Some(code) => drop(response.is(403, code)),
            None => drop(response.ok(201)),
        }
    }
    api.call(&session, "POST", "/v1/members/1/password-reset", Value::Null).await.is(404, "not_found");
}

#[tokio::test]
async fn a_deleted_members_tokens_are_revoked() {
    let api = TestApi::new().await;
    let id = api.repository("a", "hosted", vec![]).await.to_string();
    api.member("dev@example.com", permissions(&[], &["read"])).await;
    let (owner, dev) = (api.owner().await, api.sign_in("dev@example.com").await);
    let made = api.create_token(&dev, json!({"repositories": [id]})).await.ok(201);
    let path = format!("/v1/members/{}", id_of(&api, "dev@example.com").await);
    api.call(&owner, "DELETE", &path, Value::Null).await.ok(204);
    let token = made["id"].as_str().unwrap().parse().unwrap();
    let row = api.app.store.find_token(api.organization, token).await.unwrap().unwrap();
    assert!(row.revoked_at.is_some());
    let path = format!("/v1/tokens/{token}/rotation");
    let body = json!({"confirmation_token": api.confirm(&owner, "rotate_token").await});
    api.call(&owner, "POST", &path, body).await.is(409, "token_revoked");
}

#[tokio::test]
async fn members_of_another_organization_are_not_found() {
    let api = TestApi::new().await;
    let other = packhouse_store::NewOrganization { name: "other".to_owned(), base_url: None, host: None };
    let other = api.app.store.create_organization(other, None).await.unwrap().unwrap();
    let new = test_api::member(&api.app, "their@example.com", &Default::default()).await;
    let their = api.app.store.create_member(other.id, new, None).await.unwrap().unwrap();
    let owner = api.owner().await;
    let path = format!("/v1/members/{}", their.id);
    api.get(&owner, &path).await.is(404, "not_found");
    api.call(&owner, "DELETE", &path, Value::Null).await.is(404, "not_found");
    let body = json!({"permissions": {}});
    api.call(&owner, "PUT", &format!("{path}/permissions"), body).await.is(404, "not_found");
    api.call(&owner, "POST", &format!("{path}/password-reset"), Value::Null).await.is(404, "not_found");
    let listed = api.get(&owner, "/v1/members").await.ok(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    // Both organizations may have a member with the same address.
    create(&api, &owner, "their@example.com", &permissions(&[], &[])).await.ok(201);
}
