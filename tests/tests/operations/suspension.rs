//! Suspension of members. Everything of a suspended member is refused from the next request on, on
//! every server, and works again after the reactivation.

use crate::release::Release;

use packhouse_tests::database::Postgres;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, skip};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const DEV: &str = "dev@example.com";

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

/// Permissions in the organization, and actions in all repositories.
fn permissions(organization: &[&str], actions: &[&str]) -> Value {
    json!({"organization": organization, "repositories": [{"repository": "*", "actions": actions}]})
}

/// Creates a member with PASSWORD, as the owner, and returns its id.
#[track_caller]
fn member(owner: &Api, email: &str, permissions: &Value) -> String {
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

fn post(server: &Server, path: &str, body: &Value) -> Response {
    let request = Request::new("POST", path).header("Content-Type", "application/json");
    Client::new(server.api()).send(request.body(body.to_string()))
}

fn sign_in(server: &Server, password: &str) -> Response {
    post(server, "/v1/sessions", &json!({"email": DEV, "password": password}))
}

/// Suspends and reactivates a member at one server, and uses the member's credentials at another.
fn everything_of_a_member(here: &Server, there: &Server) {
    let owner = Api::sign_in(here);
    let maven = MavenRepository::create(here, "lib");
    maven.put(FILE, "hello").expect(201);
    let rights = permissions(&["manage-members"], &["read", "publish", "delete"]);
    let dev = format!("/v1/members/{}", member(&owner, DEV, &rights));
    let session = Api::sign_in_as(there, DEV, PASSWORD);
    let token = session.create_token(&[&maven.id], &["read", "write"], None);
    let api_token = session.create_api_token("me", &["read"], &[]);
    let invited = json!({"email": "friend@example.com", "permissions": permissions(&[], &["read"])});
    let code = session.post("/v1/invitations", &invited).expect(201).field("code");
    let invitation = format!("/v1/invitations/{code}/accept");
    let read = |password: &str| there.anonymous().basic(DEV, password).get(&maven.path(FILE)).status;
    let write = |password: &str, version: &str| {
        let file = format!("org/example/a/{version}/a-{version}.jar");
        there.anonymous().basic(DEV, password).put(&maven.path(&file), "hello").status
    };
    let all = || (read(&token.secret), read(PASSWORD), session.call("GET", "/v1/me").status);
    let set = |active: bool| owner.patch(&dev, &json!({"active": active})).expect(200).json();
    assert_eq!((all(), write(&token.secret, "2.0"), write(PASSWORD, "3.0")), ((200, 200, 200), 201, 201));

    for _ in 0..2 {
        assert_eq!(set(false)["active"], false);
        assert_eq!(all(), (401, 401, 401));
        assert_eq!((write(&token.secret, "4.0"), write(PASSWORD, "5.0")), (401, 401));
    }
    is(&session.call("GET", "/v1/me"), 401, "not_signed_in");
    is(&api_token.client.get("/v1/me"), 401, "not_signed_in");
    // The state of the account is told only to the right password.
    is(&sign_in(there, PASSWORD), 403, "member_suspended");
    is(&sign_in(there, "another password"), 401, "invalid_credentials");
    is(&post(there, &invitation, &json!({"password": PASSWORD})), 404, "not_found");
    assert_eq!(owner.call("GET", &dev).expect(200).json()["active"], false);
    let listed = owner.call("GET", "/v1/members").expect(200).json();
    let states: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|member| &member["active"]).collect();
    assert_eq!(states, [&json!(true), &json!(false)]);

    // The same credentials work again. Nothing was revoked.
    assert_eq!(set(true)["active"], true);
    assert_eq!((all(), write(&token.secret, "4.0"), write(PASSWORD, "5.0")), ((200, 200, 200), 201, 201));
    api_token.client.get("/v1/me").expect(200);
    sign_in(there, PASSWORD).expect(201);
    post(there, &invitation, &json!({"password": PASSWORD})).expect(201);
    let events = owner.call("GET", "/v1/audit-events?action=suspend_member").expect(200).json();
    assert_eq!(events["items"][0]["subject"], DEV);
}

#[test]
fn every_credential_of_a_suspended_member_is_refused_until_it_is_reactivated() {
    let server = Server::start();
    everything_of_a_member(&server, &server);
}

#[test]
fn a_password_reset_of_a_suspended_member_rests() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let dev = format!("/v1/members/{}", member(&owner, DEV, &permissions(&[], &["read"])));
    let reset = owner.post(&format!("{dev}/password-reset"), &json!({})).expect(201);
    let path = format!("/v1/password-resets/{}", reset.field("reset_code"));
    let complete = || post(&server, &path, &json!({"password": "another long password"}));
    owner.patch(&dev, &json!({"active": false})).expect(200);
    is(&complete(), 404, "not_found");
    owner.patch(&dev, &json!({"active": true})).expect(200);
    complete().expect(204);
    sign_in(&server, "another long password").expect(201);
}

#[test]
fn another_server_refuses_a_suspended_member_with_the_next_request() {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => return skip("suspension on two servers", &reason),
    };
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let server = Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
        server.env("PACKHOUSE_SEALING_KEY", "a key of some length").start()
    };
    everything_of_a_member(&start(), &start());
}

#[test]
fn npm_reads_with_the_token_of_a_suspended_member_are_answered_as_for_a_bad_token() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let npm = NpmRepository::create(&server, "js");
    let release = Release::new("lib", "1.0.0");
    let request = Request::new("PUT", &npm.path(release.path().trim_start_matches('/')));
    let request = request.header("Content-Type", "application/json");
    npm.client.send(request.body(release.document().to_string())).expect(201);
    let dev = member(&owner, DEV, &permissions(&[], &["read"]));
    let token = Api::sign_in_as(&server, DEV, PASSWORD).create_token(&[&npm.id], &["read"], None);
    let status = |secret: &str| server.anonymous().basic(DEV, secret).get(&npm.path("lib")).status;
    assert_eq!(status(&token.secret), 200);
    owner.patch(&format!("/v1/members/{dev}"), &json!({"active": false})).expect(200);
    assert_eq!(status(&token.secret), status("pkh_0000000000000000000000000000000000000000000"));
    assert_ne!(status(&token.secret), 200);
}

#[test]
fn the_last_owner_and_members_who_hold_more_are_not_suspended() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let own = format!("/v1/members/{}", owner.call("GET", "/v1/me").expect(200).field("id"));
    let suspend = json!({"active": false});
    is(&owner.patch(&own, &suspend), 409, "last_owner");
    let manages = permissions(&["manage-members"], &["read", "publish"]);
    let manager = format!("/v1/members/{}", member(&owner, "manager@example.com", &manages));
    let api = Api::sign_in_as(&server, "manager@example.com", PASSWORD);
    is(&api.patch(&own, &suspend), 403, "role_mismatch");
    let dev = format!("/v1/members/{}", member(&owner, DEV, &permissions(&[], &["read"])));
    let dev_api = Api::sign_in_as(&server, DEV, PASSWORD);
    for path in [dev.as_str(), own.as_str(), "/v1/members/12345"] {
        is(&dev_api.patch(path, &suspend), 403, "role_mismatch");
    }
    api.patch(&dev, &suspend).expect(200);
    is(&dev_api.call("GET", "/v1/me"), 401, "not_signed_in");
    for (path, body) in [
        (&dev, json!({})),
        (&dev, json!({"active": "no"})),
        (&dev, json!({"active": null})),
        (&dev, json!({"active": true, "name": "x"})),
    ] {
        is(&api.patch(path, &body), 400, "invalid_request");
    }
    is(&api.patch("/v1/members/12345", &suspend), 404, "not_found");

    // A suspended owner does not count: the other one is the last.
    let second = member(&owner, "second@example.com", &permissions(&["manage-owner-account"], &[]));
    owner.patch(&format!("/v1/members/{second}"), &suspend).expect(200);
    is(&owner.patch(&own, &suspend), 409, "last_owner");
    is(&owner.call("DELETE", &own), 409, "last_owner");
    // A member may suspend itself, as it may delete itself.
    api.patch(&manager, &suspend).expect(200);
    is(&api.call("GET", "/v1/me"), 401, "not_signed_in");
    // A service account is not a member.
    let account = owner.post("/v1/service-accounts", &json!({"name": "ci", "permissions": {}})).expect(201);
    is(&owner.patch(&format!("/v1/members/{}", account.field("id")), &suspend), 404, "not_found");
}
