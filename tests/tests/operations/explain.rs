//! Explanations of access: what a member or a token may do, by which grants, and the code of a
//! refusal. They agree with what the server does.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Client, MavenRepository, Response, Server, days_ahead};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const PACKAGE: &str = "org.example%3Aa";
const DEV: &str = "dev@example.com";

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

/// Creates a member with PASSWORD, as the owner, and returns its id.
#[track_caller]
fn member(owner: &Api, email: &str, permissions: &Value) -> String {
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

fn entry(repository: &str, actions: &[&str]) -> Value {
    json!({"organization": [], "repositories": [{"repository": repository, "actions": actions}]})
}

fn path(subject: &str, repository: &str, action: &str, package: Option<&str>) -> String {
    let package = package.map(|package| format!("&package={package}")).unwrap_or_default();
    format!("/v1/access/explain?{subject}&repository={repository}&action={action}{package}")
}

#[track_caller]
fn explain(api: &Api, subject: &str, repository: &str, action: &str, package: Option<&str>) -> Value {
    api.call("GET", &path(subject, repository, action, package)).expect(200).json()
}

#[test]
fn an_explanation_names_own_grants_and_those_of_teams() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "lib");
    let dev = member(&owner, DEV, &entry(&maven.id, &["read"]));
    let by_member = format!("member={dev}");
    let of = |action: &str, package: Option<&str>| explain(&owner, &by_member, &maven.id, action, package);
    let own = json!({"kind": "member", "id": dev, "name": DEV, "actions": ["read"], "packages": null});
    let read = json!({"allowed": true, "grants": [own], "denied_by": null});
    assert_eq!(of("read", None), read);
    let denied = json!({"allowed": false, "grants": [], "denied_by": "scope_mismatch_repo"});
    assert_eq!((of("publish", None), of("delete", Some(PACKAGE))), (denied.clone(), denied));
    assert_eq!(of("manage", None)["denied_by"], "insufficient_permissions");

    let publishes = json!({"repositories": [{"repository_name": "l*", "actions": ["publish"],
        "packages": ["org.example:*"]}]});
    let team = json!({"name": "Release", "permissions": publishes});
    let team = owner.post("/v1/teams", &team).expect(201).field("id");
    owner.call("PUT", &format!("/v1/teams/{team}/members/{dev}")).expect(204);
    let granted = json!([{"kind": "team", "id": team, "name": "Release", "actions": ["publish"],
        "packages": ["org.example:*"]}]);
    for package in [None, Some(PACKAGE)] {
        let allowed = json!({"allowed": true, "grants": granted, "denied_by": null});
        assert_eq!(of("publish", package), allowed);
    }
    let other = json!({"allowed": false, "grants": granted, "denied_by": "scope_mismatch_package"});
    assert_eq!(of("publish", Some("org.other%3Aa")), other);
    // The server decides in the same way.
    let put = |file: &str| server.anonymous().basic(DEV, PASSWORD).put(&maven.path(file), "hello");
    put(FILE).expect(201);
    let refused = put("org/other/a/1.0/a-1.0.jar").expect(403);
    assert_eq!(refused.field("reason_code"), "scope_mismatch_package");

    // The e-mail address and the caller's own account work too.
    assert_eq!(explain(&owner, &format!("member={DEV}"), &maven.id, "read", None), read);
    let session = Api::sign_in_as(&server, DEV, PASSWORD);
    for subject in [&by_member, &format!("member={DEV}")] {
        assert_eq!(explain(&session, subject, &maven.id, "read", None), read);
    }
    owner.patch(&format!("/v1/members/{dev}"), &json!({"active": false})).expect(200);
    let suspended = of("read", None);
    assert_eq!((&suspended["denied_by"], &suspended["grants"]), (&json!("member_suspended"), &json!([own])));
}

#[test]
fn an_explanation_of_a_token_has_its_own_limits_and_those_of_its_owner() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "lib");
    let other = owner.create_maven("other", &json!({}));
    let dev = member(&owner, DEV, &entry("*", &["read", "publish", "delete"]));
    let session = Api::sign_in_as(&server, DEV, PASSWORD);
    let body = json!({"name": "ci", "scope": ["write"], "format": "generic", "repositories": [maven.id],
        "expires_at": null, "packages": ["org.example:*"],
        "confirmation_token": session.confirm("create_token")});
    let token = session.post("/v1/tokens", &body).expect(201).field("id");
    let subject = format!("token={token}");
    let of = |action: &str, package: &str| explain(&session, &subject, &maven.id, action, Some(package));
    let published = of("publish", PACKAGE);
    let kinds: Vec<&Value> =
        published["grants"].as_array().unwrap().iter().map(|grant| &grant["kind"]).collect();
    assert_eq!((&published["allowed"], kinds), (&json!(true), vec![&json!("token"), &json!("member")]));
    let own = json!({"kind": "token", "id": token, "name": "ci", "actions": ["publish", "delete"],
        "packages": ["org.example:*"]});
    assert_eq!(published["grants"][0], own);
    for (action, package, code) in [
        ("read", PACKAGE, "scope_mismatch_repo"),
        ("publish", "org.other%3Aa", "scope_mismatch_package"),
        ("manage", PACKAGE, "insufficient_permissions"),
    ] {
        assert_eq!(of(action, package)["denied_by"], code, "{action}");
    }
    let elsewhere = explain(&session, &subject, &other, "publish", None);
    assert_eq!(elsewhere["denied_by"], "scope_mismatch_repo");
    assert_eq!(elsewhere["grants"][0]["kind"], "member");

    let set = |permissions: &Value| {
        let body = json!({"permissions": permissions});
        owner.send("PUT", &format!("/v1/members/{dev}/permissions"), &body).expect(200);
    };
    let limited = json!({"repositories": [{"repository": "*", "actions": ["read", "publish", "delete"],
        "packages": ["org.example:b*"]}]});
    set(&limited);
    assert_eq!(of("publish", PACKAGE)["denied_by"], "revoked-authority-clamp");
    assert_eq!(of("publish", "org.example%3Ab")["allowed"], true);
    set(&entry("*", &["read", "publish"]));
    assert_eq!(of("publish", PACKAGE)["denied_by"], "revoked-authority-clamp");
    set(&entry("*", &["read", "publish", "delete"]));
    session.call("DELETE", &format!("/v1/tokens/{token}")).expect(204);
    assert_eq!(of("publish", PACKAGE)["denied_by"], "unauthorized");
}

#[test]
fn a_service_account_and_a_service_key_are_explained() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let account = json!({"name": "inventory", "permissions": {"organization": ["manage-repositories"]}});
    let account = owner.post("/v1/service-accounts", &account).expect(201).field("id");
    let managed = explain(&owner, &format!("member={account}"), &repository, "manage", None);
    let grant = json!({"kind": "service_account", "id": account, "name": "inventory", "actions": ["manage"],
        "packages": null});
    assert_eq!(managed, json!({"allowed": true, "grants": [grant], "denied_by": null}));
    let body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository],
        "expires_at": days_ahead(30), "backing": {"kind": "org"},
        "confirmation_token": owner.confirm("create_token")});
    let key = owner.post("/v1/tokens", &body).expect(201).field("id");
    let read = explain(&owner, &format!("token={key}"), &repository, "read", None);
    assert_eq!((&read["allowed"], &read["grants"][0]["actions"]), (&json!(true), &json!(["read"])));
    assert_eq!(read["grants"].as_array().unwrap().len(), 1);
}

#[test]
fn others_are_explained_only_to_managers_of_members() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (visible, hidden) =
        (owner.create_maven("visible", &json!({})), owner.create_maven("hidden", &json!({})));
    member(&owner, DEV, &entry(&visible, &["read", "publish", "delete"]));
    let other = member(&owner, "other@example.com", &json!({}));
    let token = owner.create_token(&[&visible], &["read"], None);
    let dev = Api::sign_in_as(&server, DEV, PASSWORD);
    let ask = |api: &Api, subject: &str, repository: &str| {
        api.call("GET", &path(subject, repository, "read", None))
    };
    let id = dev.call("GET", "/v1/me").expect(200).field("id");
    let own = format!("member={id}");
    ask(&dev, &own, &visible).expect(200);
    for repository in [hidden.as_str(), "12345", "x"] {
        is(&ask(&dev, &own, repository), 404, "not_found");
    }
    let subjects = [
        format!("member={other}"),
        "member=12345".to_owned(),
        "member=nobody@example.com".to_owned(),
        format!("token={}", token.id),
        "token=12345".to_owned(),
    ];
    for subject in &subjects {
        is(&ask(&dev, subject, &visible), 403, "insufficient_permissions");
    }
    for subject in ["member=12345", "member=nobody@example.com", "token=12345", "token=x"] {
        is(&ask(&owner, subject, &visible), 404, "not_found");
    }
    let manages = json!({"organization": ["manage-members"]});
    member(&owner, "manager@example.com", &manages);
    let manager = Api::sign_in_as(&server, "manager@example.com", PASSWORD);
    ask(&manager, &format!("member={other}"), &hidden).expect(200);
    for query in [
        String::new(),
        own.clone(),
        format!("{own}&repository={visible}"),
        format!("{own}&repository={visible}&action=write"),
        format!("{own}&repository={visible}&action=read&package="),
        format!("{own}&token=1&repository={visible}&action=read"),
        format!("{own}&repository={visible}&action=read&version=1"),
    ] {
        is(&dev.call("GET", &format!("/v1/access/explain?{query}")), 400, "invalid_request");
    }
    is(&Client::new(server.api()).get(&path(&own, &visible, "read", None)), 401, "not_signed_in");
}
