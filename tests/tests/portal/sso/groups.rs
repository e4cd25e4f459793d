//! Groups of the provider: at each sign-in a member joins and leaves the teams that name them.

use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

use super::browser::Browser;
use super::provider::{CLIENT, Provider, User};
use super::{OWNER, PASSWORD, confirm_link, put, server, settings, sign_in, user};

/// A server whose members sign in through a provider, with two teams.
struct GroupsFixture {
    server: Server,
    provider: Provider,
    api: Api,
    /// Id of the team that names the groups `devs` and `all`.
    devs: String,
    /// Id of the team that names the group `ops`.
    ops: String,
}

impl GroupsFixture {
    fn new() -> GroupsFixture {
        let (server, provider) = (server(), Provider::start());
        let api = Api::sign_in(&server);
        put(&api, &settings(&provider.issuer)).expect(200);
        let team = |name: &str, groups: Value| {
            let body = json!({"name": name, "permissions": {}, "external_groups": groups});
            api.post("/v1/teams", &body).expect(201).field("id")
        };
        let (devs, ops) = (team("Developers", json!(["devs", "all"])), team("Operations", json!(["ops"])));
        GroupsFixture { server, provider, api, devs, ops }
    }

    /// Signs a user in with these claims; returns the ids of the member's teams.
    #[track_caller]
    fn teams_after_sign_in(&self, user: &User, claims: Value) -> Vec<String> {
        self.provider.claim(claims);
        let signed_in = sign_in(&self.server, &self.provider, &mut Browser::default(), user).expect(201);
        self.teams(signed_in.json()["member"]["id"].as_str().unwrap())
    }

    #[track_caller]
    fn teams(&self, member: &str) -> Vec<String> {
        let member = self.api.call("GET", &format!("/v1/members/{member}")).expect(200).json();
        let teams = member["teams"].as_array().unwrap().iter();
        teams.map(|team| team["id"].as_str().unwrap().to_owned()).collect()
    }

    /// A member who only manages the account of the organization.
    fn owner_with_few_rights(&self) -> Api {
        let permissions = json!({"organization": ["manage-owner-account"], "repositories": []});
        let few = json!({"email": "few@example.org", "password": PASSWORD, "permissions": permissions});
        self.api.post("/v1/members", &few).expect(201);
        Api::sign_in_as(&self.server, "few@example.org", PASSWORD)
    }

    /// Number of warnings about unknown groups in the log.
    fn warnings(&self) -> usize {
        self.server.log().matches("groups unknown").count()
    }
}

#[test]
fn a_member_joins_and_leaves_teams_by_the_groups_of_the_provider() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { api, devs, ops, .. } = &fixture;
    let someone = user("u1", "someone@example.com");
    let signed_in = |groups: Value| fixture.teams_after_sign_in(&someone, json!({"groups": groups}));
    assert_eq!(signed_in(json!(["devs", "unknown"])), std::slice::from_ref(devs));
    assert_eq!(signed_in(json!(["ops", "all"])), [devs.clone(), ops.clone()]);
    assert_eq!(signed_in(json!("ops")), std::slice::from_ref(ops));
    assert_eq!(signed_in(json!([])), Vec::<String>::new());

    // A team by hand stays, whatever the provider states.
    let members = api.call("GET", "/v1/members").expect(200).json();
    let id = members["items"][1]["id"].as_str().unwrap();
    api.call("PUT", &format!("/v1/teams/{ops}/members/{id}")).expect(204);
    assert_eq!(signed_in(json!(["devs"])), [devs.clone(), ops.clone()]);
    let listed = |team: &str| api.call("GET", &format!("/v1/teams/{team}/members")).expect(200).json();
    assert_eq!(listed(devs)["items"][0]["source"], "external");
    assert_eq!(listed(ops)["items"][0]["source"], "manual");
    assert_eq!(signed_in(json!([])), std::slice::from_ref(ops));
    assert_eq!(fixture.warnings(), 0);
}

#[test]
fn memberships_stay_if_the_token_does_not_state_the_groups() {
    let fixture = GroupsFixture::new();
    let devs = &fixture.devs;
    let someone = user("u1", "someone@example.com");
    assert_eq!(
        fixture.teams_after_sign_in(&someone, json!({"groups": ["devs"]})),
        std::slice::from_ref(devs)
    );
    let many: Vec<String> = (0..1_001).map(|number| format!("group-{number}")).collect();
    let unknown = [
        json!({}),
        json!({"groups": null}),
        json!({"groups": 7}),
        json!({"groups": [["devs"]]}),
        json!({"groups": many}),
        json!({"hasgroups": true}),
        json!({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}}),
    ];
    for (number, claims) in (1..).zip(unknown) {
        assert_eq!(
            fixture.teams_after_sign_in(&someone, claims.clone()),
            std::slice::from_ref(devs),
            "{claims}"
        );
        assert_eq!(fixture.warnings(), number, "{claims}");
    }
    // No team names a group any more, so nobody needs the claim.
    for team in [devs, &fixture.ops] {
        let path = format!("/v1/teams/{team}");
        fixture.api.patch(&path, &json!({"external_groups": []})).expect(200);
    }
    let before = fixture.warnings();
    fixture.teams_after_sign_in(&someone, json!({}));
    assert_eq!(fixture.warnings(), before);
}

#[test]
fn the_claim_with_the_groups_has_a_name() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { api, provider, devs, ops, .. } = &fixture;
    assert_eq!(api.call("GET", "/v1/sso").expect(200).json()["groups_claim"], "groups");
    let mut body = settings(&provider.issuer);
    for wrong in [json!(""), json!("a b"), json!("a\u{0}")] {
        body["groups_claim"] = wrong;
        assert_eq!(put(api, &body).expect(400).field("error"), "invalid_sso_settings", "{body}");
    }
    body["groups_claim"] = json!("https://example.com/roles");
    assert_eq!(put(api, &body).expect(200).json()["groups_claim"], "https://example.com/roles");
    let claims = json!({"https://example.com/roles": ["ops"], "groups": ["devs"]});
    let someone = user("u1", "someone@example.com");
    assert_eq!(fixture.teams_after_sign_in(&someone, claims), std::slice::from_ref(ops));
    body["groups_claim"] = Value::Null;
    assert_eq!(put(api, &body).expect(200).json()["groups_claim"], "groups");
    assert_eq!(
        fixture.teams_after_sign_in(&someone, json!({"groups": ["devs"]})),
        std::slice::from_ref(devs)
    );
}

#[test]
fn an_owner_cannot_redirect_groups_to_reach_a_team_that_holds_more() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { provider, api, ops, .. } = &fixture;
    let few = fixture.owner_with_few_rights();
    let without_members = |issuer: &str| json!({"issuer": issuer, "client_id": CLIENT});
    // The teams give nothing yet.
    put(&few, &without_members("https://own.example.com")).expect(200);
    put(&few, &without_members(&provider.issuer)).expect(200);

    let publishes = json!({"repositories": [{"repository": "*", "actions": ["publish"]}]});
    api.patch(&format!("/v1/teams/{ops}"), &json!({"permissions": publishes})).expect(200);
    let mut claim = without_members(&provider.issuer);
    claim["groups_claim"] = json!("nickname");
    let mut client = without_members(&provider.issuer);
    client["client_id"] = json!("own-client");
    for body in [without_members("https://own.example.com"), claim, client] {
        assert_eq!(put(&few, &body).expect(403).field("error"), "role_mismatch", "{body}");
    }
    // The same groups as before, and a provider of an owner who holds the permissions of the team.
    put(&few, &without_members(&provider.issuer)).expect(200);
    few.call("DELETE", "/v1/sso").expect(204);
    assert_eq!(put(&few, &without_members(&provider.issuer)).expect(403).field("error"), "role_mismatch");
    put(api, &settings(&provider.issuer)).expect(200);
}

#[test]
fn an_owner_cannot_bring_a_provider_that_signs_in_a_member_who_holds_more() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { api, provider, .. } = &fixture;
    let few = fixture.owner_with_few_rights();
    let directory: Client = api.create_api_token("me", &["scim"], &[]).client;
    let request = Request::new("POST", "/scim/v2/Users").header("Content-Type", "application/scim+json");
    let body = json!({"userName": "someone@example.com"}).to_string();
    let id = directory.send(request.body(body)).expect(201).field("id");
    let publishes = json!({"repositories": [{"repository": "*", "actions": ["publish"]}]});
    let path = format!("/v1/members/{id}/permissions");
    api.send("PUT", &path, &json!({"permissions": publishes})).expect(200);
    let other = json!({"issuer": "https://own.example.com", "client_id": CLIENT});
    assert_eq!(put(&few, &other).expect(403).field("error"), "role_mismatch");
    // Once the member has signed in, another provider needs the member's confirmation.
    provider.claim(json!({}));
    let someone = user("u1", "someone@example.com");
    sign_in(&fixture.server, provider, &mut Browser::default(), &someone).expect(201);
    put(&few, &other).expect(200);
}

#[test]
fn a_member_who_confirms_the_provider_follows_the_groups_at_once() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { server, provider, api, devs, .. } = &fixture;
    provider.claim(json!({"groups": ["devs", "x".repeat(200), "y".repeat(200)]}));
    let mut browser = Browser::default();
    sign_in(server, provider, &mut browser, &user("u2", OWNER)).expect(303);
    let owner = api.call("GET", "/v1/me").expect(200).field("id");
    assert!(fixture.teams(&owner).is_empty(), "the member has not confirmed the identity yet");
    confirm_link(server, &mut browser, PASSWORD).expect(303);
    assert_eq!(fixture.teams(&owner), std::slice::from_ref(devs));
}

#[test]
fn a_suspended_member_cannot_sign_in_through_the_provider() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { server, provider, api, .. } = &fixture;
    let someone = user("u1", "someone@example.com");
    let signed_in = sign_in(server, provider, &mut Browser::default(), &someone).expect(201).json();
    let path = format!("/v1/members/{}", signed_in["member"]["id"].as_str().unwrap());
    api.patch(&path, &json!({"active": false})).expect(200);
    let mut browser = Browser::default();
    let refused = sign_in(server, provider, &mut browser, &someone).expect(403);
    assert_eq!(refused.field("error"), "member_suspended");
    assert_eq!(browser.cookie(server.api(), "packhouse_session"), None);
    let refusals = "/v1/audit-events?outcome=refused&actor=someone@example.com";
    let refusals = api.call("GET", refusals).expect(200).json();
    assert_eq!(refusals["items"][0]["code"], "member_suspended", "{refusals}");
    api.patch(&path, &json!({"active": true})).expect(200);
    sign_in(server, provider, &mut Browser::default(), &someone).expect(201);
}

#[test]
fn a_member_of_the_directory_signs_in_without_a_password() {
    let fixture = GroupsFixture::new();
    let GroupsFixture { server, api, devs, .. } = &fixture;
    let directory: Client = api.create_api_token("me", &["scim"], &[]).client;
    let body = json!({"userName": "someone@example.com"}).to_string();
    let request = Request::new("POST", "/scim/v2/Users").header("Content-Type", "application/scim+json");
    let id = directory.send(request.body(body)).expect(201).field("id");
    let someone = user("u1", "someone@example.com");
    assert_eq!(
        fixture.teams_after_sign_in(&someone, json!({"groups": ["devs"]})),
        std::slice::from_ref(devs)
    );
    assert_eq!(fixture.teams(&id), std::slice::from_ref(devs));
    // Memberships that SCIM made do not depend on the groups of the provider.
    let group = json!({"displayName": "Pushed", "members": [{"value": id}]}).to_string();
    let request = Request::new("POST", "/scim/v2/Groups").header("Content-Type", "application/scim+json");
    let pushed = directory.send(request.body(group)).expect(201).field("id");
    assert_eq!(fixture.teams_after_sign_in(&someone, json!({"groups": []})), [pushed]);
    assert_eq!(server.log().matches("groups unknown").count(), 0);
}
