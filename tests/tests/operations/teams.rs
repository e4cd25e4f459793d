//! Teams: their members have the permissions of the team besides their own, from the next request
//! on. Nobody gets more through a team than its manager holds.

use packhouse_tests::database::{self, Postgres};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, skip};
use serde_json::{Value, json};

const TEAMS: &str = "/v1/teams";
const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const DEV: &str = "dev@example.com";
const MANAGER: &str = "manager@example.com";

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

/// Permissions in the organization, and actions in one repository, or in all (`*`).
fn permissions(organization: &[&str], repository: &str, actions: &[&str]) -> Value {
    json!({"organization": organization, "repositories": [{"repository": repository, "actions": actions}]})
}

/// Creates a member with PASSWORD, as the owner, and returns its id.
#[track_caller]
fn member(owner: &Api, email: &str, permissions: &Value) -> String {
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

/// Creates a team with these permissions and returns its id.
#[track_caller]
fn team(api: &Api, name: &str, permissions: &Value) -> String {
    api.post(TEAMS, &json!({"name": name, "permissions": permissions})).expect(201).field("id")
}

fn path(team: &str) -> String {
    format!("{TEAMS}/{team}")
}

fn membership(team: &str, member: &str) -> String {
    format!("{TEAMS}/{team}/members/{member}")
}

#[test]
fn a_team_is_created_changed_and_deleted() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let reads = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
    let body = json!({"name": "Release", "description": "Publishes releases.", "permissions": reads,
        "external_groups": ["cn=release", "cn=release"]});
    let made = api.post(TEAMS, &body).expect(201).json();
    let id = made["id"].as_str().unwrap();
    let expected = json!({"id": id, "name": "Release", "description": "Publishes releases.",
        "permissions": reads, "external_groups": ["cn=release"], "members": 0, "created_at": made["created_at"]});
    assert!(made["created_at"].is_i64());
    assert_eq!(made, expected);
    assert_eq!(api.call("GET", &path(id)).expect(200).json(), made);
    assert_eq!(api.call("GET", TEAMS).expect(200).json(), json!({"items": [made], "next": null}));

    is(&api.post(TEAMS, &body), 409, "team_already_exists");
    for name in [json!(""), json!("a".repeat(65)), json!("a\nb"), json!(7), Value::Null] {
        is(&api.post(TEAMS, &json!({"name": name, "permissions": {}})), 400, "invalid_team_name");
        is(&api.patch(&path(id), &json!({"name": name})), 400, "invalid_team_name");
    }
    for wrong in [
        json!({"name": "a"}),
        json!({"name": "a", "permissions": {}, "members": []}),
        json!({"name": "a", "permissions": {}, "external_groups": [""]}),
        json!({"name": "a", "permissions": {}, "external_groups": vec!["g"; 101]}),
        json!({"name": "a", "permissions": {"repositories": [{"actions": ["read"]}]}}),
        json!({"name": "a", "permissions": {"repositories": [{"repository": "12345", "actions": ["read"]}]}}),
    ] {
        is(&api.post(TEAMS, &wrong), 400, "invalid_request");
    }

    let other = team(&api, "Other", &json!({}));
    is(&api.patch(&path(&other), &json!({"name": "Release"})), 409, "team_already_exists");
    let change = json!({"name": "Second", "permissions": reads});
    let changed = api.patch(&path(&other), &change).expect(200).json();
    assert_eq!((&changed["name"], &changed["permissions"]), (&json!("Second"), &reads));
    assert_eq!((&changed["description"], &changed["external_groups"]), (&json!(""), &json!([])));
    let first = api.call("GET", &format!("{TEAMS}?limit=1")).expect(200).json();
    let next = first["next"].as_str().unwrap();
    let second = api.call("GET", &format!("{TEAMS}?limit=1&after={next}")).expect(200).json();
    assert_eq!((&first["items"], &second["items"]), (&json!([made]), &json!([changed])));
    assert_eq!(second["next"], Value::Null);

    api.call("DELETE", &path(id)).expect(204);
    for id in [id, "x", "12345"] {
        is(&api.call("GET", &path(id)), 404, "not_found");
        is(&api.call("DELETE", &path(id)), 404, "not_found");
    }
    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).json();
    let actions: Vec<&str> =
        events["items"].as_array().unwrap().iter().map(|event| event["action"].as_str().unwrap()).collect();
    for action in ["create_team", "change_team", "delete_team"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
}

#[test]
fn members_join_and_leave_a_team() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = team(&api, "Release", &json!({}));
    let dev = member(&api, DEV, &json!({}));
    let account = json!({"name": "inventory", "permissions": {}});
    let account = api.post("/v1/service-accounts", &account).expect(201).field("id");
    let list = format!("{}/members", path(&id));
    for member in [&dev, &dev, &account] {
        api.call("PUT", &membership(&id, member)).expect(204);
    }
    let listed = api.call("GET", &list).expect(200).json();
    let expected = json!([
        {"id": dev, "email": DEV, "name": "", "source": "manual"},
        {"id": account, "email": null, "name": "inventory", "source": "manual"},
    ]);
    assert_eq!((&listed["items"], &listed["next"]), (&expected, &Value::Null));
    assert_eq!(api.call("GET", &path(&id)).expect(200).json()["members"], 2);
    let first = api.call("GET", &format!("{list}?limit=1")).expect(200).json();
    let rest = api.call("GET", &format!("{list}?limit=1&after={}", first["next"].as_str().unwrap()));
    assert_eq!(rest.expect(200).json()["items"], json!([expected[1]]));
    for _ in 0..2 {
        api.call("DELETE", &membership(&id, &dev)).expect(204);
    }
    assert_eq!(api.call("GET", &list).expect(200).json()["items"], json!([expected[1]]));
    for method in ["PUT", "DELETE"] {
        is(&api.call(method, &membership(&id, "12345")), 404, "not_found");
        is(&api.call(method, &membership("12345", &dev)), 404, "not_found");
    }
    // The memberships of a deleted member end with the member.
    api.call("PUT", &membership(&id, &dev)).expect(204);
    api.call("DELETE", &format!("/v1/members/{dev}")).expect(204);
    assert_eq!(api.call("GET", &path(&id)).expect(200).json()["members"], 1);
}

#[test]
fn members_have_the_permissions_of_their_teams_from_the_next_request_on() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "lib");
    maven.put(FILE, "hello").expect(201);
    let id = team(&api, "Readers", &permissions(&[], &maven.id, &["read"]));
    let dev = member(&api, DEV, &permissions(&["manage-subscribers"], &maven.id, &["publish"]));
    let session = Api::sign_in_as(&server, DEV, PASSWORD);
    let read = || server.anonymous().basic(DEV, PASSWORD).get(&maven.path(FILE)).status;
    assert_eq!(read(), 403);
    api.call("PUT", &membership(&id, &dev)).expect(204);
    assert_eq!(read(), 200);
    let me = session.call("GET", "/v1/me").expect(200).json();
    let own = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": maven.id, "actions": ["publish"]}]});
    let effective = json!({"organization": ["manage-subscribers"],
        "repositories": [{"repository": maven.id, "actions": ["publish", "read"]}]});
    assert_eq!((&me["permissions"], &me["effective_permissions"]), (&own, &effective));
    assert_eq!((&me["teams"], &me["active"]), (&json!([{"id": id, "name": "Readers"}]), &json!(true)));
    assert_eq!(me["repositories"][0]["actions"], json!(["read", "publish"]));
    let by_owner = api.call("GET", &format!("/v1/members/{dev}")).expect(200).json();
    for field in ["permissions", "teams", "effective_permissions", "active"] {
        assert_eq!(by_owner[field], me[field], "{field}");
    }
    let token = session.create_token(&[&maven.id], &["read"], None);
    let by_token = || server.anonymous().basic(DEV, &token.secret).get(&maven.path(FILE)).status;
    assert_eq!(by_token(), 200);

    // A change of the team, the end of the membership and the end of the team apply at once.
    let set = |permissions: Value| api.patch(&path(&id), &json!({"permissions": permissions})).expect(200);
    set(json!({}));
    assert_eq!((read(), by_token()), (403, 403));
    set(permissions(&[], "*", &["read"]));
    assert_eq!((read(), by_token()), (200, 200));
    api.call("DELETE", &membership(&id, &dev)).expect(204);
    assert_eq!((read(), by_token()), (403, 403));
    api.call("PUT", &membership(&id, &dev)).expect(204);
    assert_eq!((read(), by_token()), (200, 200));
    api.call("DELETE", &path(&id)).expect(204);
    assert_eq!((read(), by_token()), (403, 403));
    assert_eq!(session.call("GET", "/v1/me").expect(200).json()["teams"], json!([]));
}

#[test]
fn a_team_with_more_than_the_actor_holds_is_refused() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (here, there) = (owner.create_maven("here", &json!({})), owner.create_maven("there", &json!({})));
    member(&owner, MANAGER, &permissions(&["manage-members"], &here, &["read", "publish"]));
    let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
    let dev = member(&owner, DEV, &json!({}));
    for wanted in [
        permissions(&[], &there, &["read"]),
        permissions(&[], &here, &["delete"]),
        permissions(&[], &here, &["manage"]),
        permissions(&[], "*", &["read"]),
        permissions(&["manage-owner-account"], &here, &[]),
        json!({"repositories": [{"repository_name": "here", "actions": ["read"]}]}),
    ] {
        is(&manager.post(TEAMS, &json!({"name": "t", "permissions": wanted})), 403, "role_mismatch");
    }
    let weak = team(&manager, "weak", &permissions(&[], &here, &["read"]));
    manager.call("PUT", &membership(&weak, &dev)).expect(204);
    let strong = team(&owner, "strong", &permissions(&[], &there, &["read"]));
    owner.call("PUT", &membership(&strong, &dev)).expect(204);
    let more = json!({"permissions": permissions(&[], &there, &["read"])});
    is(&manager.patch(&path(&weak), &more), 403, "role_mismatch");
    for change in [json!({"external_groups": ["mine"]}), json!({"permissions": {}}), json!({"name": "x"})] {
        is(&manager.patch(&path(&strong), &change), 403, "role_mismatch");
    }
    is(&manager.call("DELETE", &path(&strong)), 403, "role_mismatch");
    let own = manager.call("GET", "/v1/me").expect(200).field("id");
    for member in [&own, &dev] {
        is(&manager.call("PUT", &membership(&strong, member)), 403, "role_mismatch");
    }
    is(&manager.call("DELETE", &membership(&strong, &dev)), 403, "role_mismatch");
    // The existence of both is judged first.
    is(&manager.call("PUT", &membership(&strong, "12345")), 404, "not_found");

    // Permissions through a team also protect the member.
    let member = format!("/v1/members/{dev}");
    let none = json!({"permissions": {}});
    is(&manager.send("PUT", &format!("{member}/permissions"), &none), 403, "role_mismatch");
    is(&manager.call("POST", &format!("{member}/password-reset")), 403, "role_mismatch");
    is(&manager.patch(&member, &json!({"active": false})), 403, "role_mismatch");
    is(&manager.call("DELETE", &member), 403, "role_mismatch");
    owner.call("DELETE", &membership(&strong, &dev)).expect(204);
    manager.call("DELETE", &member).expect(204);
    // A manager who gets more through a team may grant it.
    owner.call("PUT", &membership(&strong, &own)).expect(204);
    manager.patch(&path(&weak), &more).expect(200);
}

#[test]
fn codes_end_when_their_maker_loses_a_team() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let id = team(&owner, "Managers", &permissions(&["manage-members"], "*", &["read", "publish"]));
    let manager_id = member(&owner, MANAGER, &permissions(&[], "*", &["read"]));
    owner.call("PUT", &membership(&id, &manager_id)).expect(204);
    let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
    let dev = member(&owner, DEV, &permissions(&[], "*", &["publish"]));
    let reset = manager.call("POST", &format!("/v1/members/{dev}/password-reset")).expect(201);
    let invited = json!({"email": "friend@example.com", "permissions": permissions(&[], "*", &["publish"])});
    let invited = manager.post("/v1/invitations", &invited).expect(201);
    owner.call("DELETE", &membership(&id, &manager_id)).expect(204);
    let post = |path: &str| {
        let request = Request::new("POST", path).header("Content-Type", "application/json");
        Client::new(server.api()).send(request.body(json!({"password": "another password"}).to_string()))
    };
    is(&post(&format!("/v1/password-resets/{}", reset.field("reset_code"))), 404, "not_found");
    is(&post(&format!("/v1/invitations/{}/accept", invited.field("code"))), 404, "not_found");
    Api::sign_in_as(&server, DEV, PASSWORD);
}

#[test]
fn patterns_of_names_are_compared_with_the_names_of_repositories() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (inside, outside) =
        (owner.create_maven("acme-lib", &json!({})), owner.create_maven("lib", &json!({})));
    let by_name = |pattern: &str, actions: &[&str]| json!({"repositories": [{"repository_name": pattern, "actions": actions}]});
    let mut held = by_name("acme-*", &["read", "publish"]);
    held["organization"] = json!(["manage-members"]);
    member(&owner, MANAGER, &held);
    let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
    for (name, wanted, granted) in [
        ("a", permissions(&[], &inside, &["read"]), true),
        ("b", permissions(&[], &outside, &["read"]), false),
        ("c", by_name("acme-x*", &["publish"]), true),
        ("d", by_name("*", &["read"]), false),
        ("e", by_name("acme-*", &["delete"]), false),
    ] {
        let answer = manager.post(TEAMS, &json!({"name": name, "permissions": wanted}));
        match granted {
            true => drop(answer.expect(201)),
            false => is(&answer, 403, "role_mismatch"),
        }
    }
    // The invitation and its acceptance compare in the same way.
    let publishes = permissions(&[], &inside, &["publish"]);
    let invited = json!({"email": "friend@example.com", "permissions": publishes});
    let code = manager.post("/v1/invitations", &invited).expect(201).field("code");
    let request = Request::new("POST", &format!("/v1/invitations/{code}/accept"));
    let request = request.header("Content-Type", "application/json");
    Client::new(server.api()).send(request.body(json!({"password": PASSWORD}).to_string())).expect(201);
    // A repository that is created later has the name too, and the member may search it.
    let later = MavenRepository::create(&server, "acme-later");
    later.put(FILE, "hello").expect(201);
    let there = server.anonymous().basic(MANAGER, PASSWORD);
    there.get(&later.path(FILE)).expect(200);
    let found = manager.call("GET", "/v1/search?q=").expect(200).json();
    assert_eq!(found["items"][0]["repository"]["name"], "acme-later");
}

#[test]
fn teams_need_the_right_to_manage_members() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let id = team(&owner, "Release", &json!({}));
    let dev = member(&owner, DEV, &permissions(&["manage-repositories"], "*", &["read"]));
    let api = Api::sign_in_as(&server, DEV, PASSWORD);
    for id in [id.as_str(), "12345"] {
        for (method, path) in [
            ("GET", path(id)),
            ("DELETE", path(id)),
            ("GET", format!("{}/members", path(id))),
            ("PUT", membership(id, &dev)),
            ("DELETE", membership(id, &dev)),
        ] {
            is(&api.call(method, &path), 403, "insufficient_permissions");
        }
        is(&api.patch(&path(id), &json!({"name": "x"})), 403, "insufficient_permissions");
    }
    is(&api.call("GET", TEAMS), 403, "insufficient_permissions");
    is(&api.post(TEAMS, &json!({"name": "x", "permissions": {}})), 403, "insufficient_permissions");
    is(&Client::new(server.api()).get(TEAMS), 401, "not_signed_in");
}

#[test]
fn the_number_of_teams_is_bounded() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    team(&api, "first", &json!({}));
    // Faster than 999 calls.
    database::sqlite(
        &server,
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 999) \
         insert into teams (id, organization, name, description, permissions, external_groups, created_at) \
         select 1000 + i, (select id from organizations), 'team ' || i, '', '{}', '[]', 0 from n",
    );
    is(&api.post(TEAMS, &json!({"name": "last", "permissions": {}})), 409, "too_many_teams");
    api.call("DELETE", &path("1001")).expect(204);
    team(&api, "last", &json!({}));
}

#[test]
fn a_server_of_the_previous_version_prevents_what_it_does_not_know() {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => return skip("a server of the previous version", &reason),
    };
    let server = Server::with().arg("--database-url").arg(&postgres.url()).start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    let id = team(&api, "before", &json!({}));
    let dev = member(&api, DEV, &json!({}));
    // Connections of a server of the previous version have this name.
    let older = postgres.hold("set application_name = 'packhouse'");
    let manage = permissions(&[], &repository, &["manage"]);
    let limited = json!({"repositories": [{"repository": "*", "actions": ["publish"], "packages": ["a"]}]});
    let token = || {
        json!({"name": "ci", "scope": ["write"], "format": "generic", "repositories": [repository],
            "expires_at": null, "packages": ["a"], "confirmation_token": api.confirm("create_token")})
    };
    let old = "servers_too_old";
    is(&api.post(TEAMS, &json!({"name": "x", "permissions": {}})), 409, old);
    is(&api.patch(&path(&id), &json!({"name": "x"})), 409, old);
    is(&api.call("PUT", &membership(&id, &dev)), 409, old);
    is(&api.patch(&format!("/v1/members/{dev}"), &json!({"active": false})), 409, old);
    for permissions in [&manage, &limited] {
        let body = json!({"permissions": permissions});
        is(&api.send("PUT", &format!("/v1/members/{dev}/permissions"), &body), 409, old);
        let invited = json!({"email": "friend@example.com", "permissions": permissions});
        is(&api.post("/v1/invitations", &invited), 409, old);
    }
    is(&api.post("/v1/tokens", &token()), 409, old);
    // Everything that the previous version knows still works.
    let body = json!({"permissions": permissions(&[], &repository, &["read"])});
    api.send("PUT", &format!("/v1/members/{dev}/permissions"), &body).expect(200);
    drop(older);
    packhouse_tests::server::eventually("the connection ends", || {
        (api.patch(&path(&id), &json!({"name": "after"})).status == 200).then_some(())
    });
    api.call("PUT", &membership(&id, &dev)).expect(204);
    api.post("/v1/tokens", &token()).expect(201);
    assert_eq!(api.call("GET", "/v1/me").expect(200).field("email"), OWNER);
}
