//! SCIM 2.0: a directory manages members as users and teams as groups. `scim_entra.rs` and
//! `scim_okta.rs` send the requests of these two directories.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server};
use serde_json::{Value, json};

const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

/// A server with a directory that has an API token for SCIM.
pub(crate) struct Directory {
    pub(crate) server: Server,
    pub(crate) owner: Api,
    client: Client,
}

impl Directory {
    /// Starts a server. The owner's token is the directory's.
    pub(crate) fn start() -> Directory {
        let server = Server::start();
        let owner = Api::sign_in(&server);
        let client = owner.create_api_token("me", &["scim"], &[]).client;
        Directory { server, owner, client }
    }

    /// Returns a client for a directory with the token of a service account that only manages
    /// members.
    fn with_few_rights(&self) -> Client {
        let permissions = json!({"organization": ["manage-members"], "repositories": []});
        let account = json!({"name": "directory", "permissions": permissions});
        let account = self.owner.post("/v1/service-accounts", &account).expect(201).field("id");
        self.owner.create_api_token(&account, &["scim"], &[]).client
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.client.send(Request::new("GET", &format!("/scim/v2{path}")))
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        send(&self.client, method, path, body)
    }

    pub(crate) fn delete(&self, path: &str) -> Response {
        self.client.send(Request::new("DELETE", &format!("/scim/v2{path}")))
    }

    /// Creates a user; returns its id.
    #[track_caller]
    pub(crate) fn user(&self, email: &str) -> String {
        self.send("POST", "/Users", &json!({"userName": email})).expect(201).field("id")
    }

    /// Creates a group with these members; returns its id.
    #[track_caller]
    pub(crate) fn group(&self, name: &str, members: &[&str]) -> String {
        let members: Vec<Value> = members.iter().map(|id| json!({"value": id})).collect();
        let group = json!({"displayName": name, "members": members});
        self.send("POST", "/Groups", &group).expect(201).field("id")
    }

    /// Sends a PATCH with one operation.
    pub(crate) fn patch(&self, path: &str, operation: &Value) -> Response {
        self.send("PATCH", path, &patch(operation))
    }

    /// Lists the resources that a filter finds.
    #[track_caller]
    pub(crate) fn find(&self, kind: &str, filter: &str) -> Vec<Value> {
        let path = format!("/{kind}?filter={}", encoded(filter));
        self.get(&path).expect(200).json()["Resources"].as_array().unwrap().clone()
    }

    /// Ids of the members of a group, in order.
    #[track_caller]
    pub(crate) fn members(&self, group: &str) -> Vec<String> {
        let group = self.get(&format!("/Groups/{group}")).expect(200).json();
        let members = group["members"].as_array().unwrap().iter();
        let mut ids: Vec<String> = members.map(|of| of["value"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    /// The status of a request with a member's password.
    fn sign_in(&self, email: &str) -> u16 {
        let body = json!({"email": email, "password": PASSWORD}).to_string();
        let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
        Client::new(self.server.api()).send(request.body(body)).status
    }
}

fn send(client: &Client, method: &str, path: &str, body: &Value) -> Response {
    let request = Request::new(method, &format!("/scim/v2{path}"));
    client.send(request.header("Content-Type", "application/scim+json").body(body.to_string()))
}

fn patch(operation: &Value) -> Value {
    json!({"schemas": [PATCH], "Operations": [operation]})
}

/// Percent-encodes a text for a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Checks that a response is an error of RFC 7644 with this type. An empty type means that it has
/// none.
#[track_caller]
pub(crate) fn refused(answer: &Response, status: u16, scim_type: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/scim+json"));
    let body = answer.json();
    assert_eq!(body["schemas"], json!([ERROR]), "{body}");
    assert_eq!(body["status"], json!(status.to_string()), "{body}");
    assert_eq!(answer.field("scimType"), scim_type, "{body}");
    assert!(!answer.field("detail").is_empty(), "{body}");
    assert_eq!(answer.header("x-request-id"), Some(answer.field("request_id").as_str()));
}

#[test]
fn users_are_created_found_changed_and_deleted() {
    let directory = Directory::start();
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "Jane@Example.com",
        "externalId": "x-1", "name": {"givenName": "Jane", "familyName": "Doe"}, "unknown": [1, {}],
    });
    let made = directory.send("POST", "/Users", &body).expect(201);
    assert_eq!(made.header("content-type"), Some("application/scim+json"));
    let (id, user) = (made.field("id"), made.json());
    let location = format!("http://{}/scim/v2/Users/{id}", directory.server.api());
    assert_eq!(made.header("location"), Some(location.as_str()));
    assert_eq!(user["meta"]["location"], json!(location));
    assert_eq!(user["meta"]["resourceType"], "User");
    assert_eq!((&user["userName"], &user["active"]), (&json!("jane@example.com"), &json!(true)));
    assert_eq!(user["emails"], json!([{"value": "jane@example.com", "type": "work", "primary": true}]));
    assert_eq!((&user["displayName"], &user["name"]["formatted"]), (&json!("Jane Doe"), &json!("Jane Doe")));
    assert_eq!(directory.get(&format!("/Users/{id}")).expect(200).json(), user);
    // The member has neither a password nor permissions.
    let member = directory.owner.call("GET", &format!("/v1/members/{id}")).expect(200).json();
    assert_eq!(member["permissions"], json!({"organization": [], "repositories": []}));
    assert_eq!((&member["email"], &member["name"]), (&json!("jane@example.com"), &json!("Jane Doe")));
    assert_eq!(directory.sign_in("jane@example.com"), 401);

    for filter in [
        "userName eq \"JANE@example.com\"",
        "USERNAME EQ \"jane@example.com\"",
        "externalId eq \"x-1\"",
        "emails.value eq \"jane@example.com\"",
        "emails[type eq \"work\"].value eq \"jane@example.com\"",
        &format!("id eq \"{id}\""),
    ] {
        assert_eq!(directory.find("Users", filter), std::slice::from_ref(&user), "{filter}");
    }
    for (attribute, text) in
        [("userName", "nobody@example.com"), ("userName", "x"), ("externalId", "X-1"), ("id", "x")]
    {
        let found = directory.find("Users", &format!("{attribute} eq \"{text}\""));
        assert!(found.is_empty(), "{attribute} {text}: {found:?}");
    }

    let path = format!("/Users/{id}");
    let family = json!({"op": "replace", "path": "name.familyName", "value": "Roe"});
    assert_eq!(directory.patch(&path, &family).expect(200).field("displayName"), "Jane Roe");
    let moved = json!({"userName": "jane.roe@example.com", "displayName": "J. Roe", "active": true});
    let moved = directory.send("PUT", &path, &moved).expect(200).json();
    assert_eq!((moved["userName"].as_str(), &moved["active"]), (Some("jane.roe@example.com"), &json!(true)));
    assert_eq!(moved["displayName"], "J. Roe");
    assert_eq!(moved["externalId"], "x-1", "absent attributes stay");
    let freed = directory.patch(&path, &json!({"op": "remove", "path": "externalId"})).expect(200);
    assert_eq!(freed.json().get("externalId"), None);
    let again = json!({"userName": "JANE.ROE@example.com"});
    refused(&directory.send("POST", "/Users", &again), 409, "uniqueness");
    let other = directory.user("other@example.com");
    let taken = json!({"op": "replace", "path": "userName", "value": "jane.roe@example.com"});
    refused(&directory.patch(&format!("/Users/{other}"), &taken), 409, "uniqueness");
    let ours = json!({"userName": "third@example.com", "externalId": "x-2"});
    directory.send("POST", "/Users", &ours).expect(201);
    let same = json!({"op": "add", "path": "externalId", "value": "x-2"});
    refused(&directory.patch(&path, &same), 409, "uniqueness");

    directory.delete(&path).expect(204);
    refused(&directory.delete(&path), 404, "");
    refused(&directory.get(&path), 404, "");
}

#[test]
fn a_user_that_is_not_active_is_suspended() {
    let directory = Directory::start();
    let new = json!({"email": "dev@example.com", "password": PASSWORD, "permissions": {}});
    let id = directory.owner.post("/v1/members", &new).expect(201).field("id");
    let session = Api::sign_in_as(&directory.server, "dev@example.com", PASSWORD);
    let path = format!("/Users/{id}");
    let set = |value: Value| {
        let operation = json!({"op": "Replace", "path": "active", "value": value});
        directory.patch(&path, &operation)
    };
    for off in [json!(false), json!("False")] {
        assert_eq!(set(off).expect(200).json()["active"], json!(false));
        session.call("GET", "/v1/me").expect(401);
        assert_eq!(directory.sign_in("dev@example.com"), 403);
        assert_eq!(set(json!("true")).expect(200).json()["active"], json!(true));
        session.call("GET", "/v1/me").expect(200);
    }
    let created = json!({"userName": "late@example.com", "active": false});
    let created = directory.send("POST", "/Users", &created).expect(201).json();
    assert_eq!(created["active"], json!(false));

    // Somebody must be able to manage the organization.
    let owner = directory.owner.call("GET", "/v1/me").expect(200).field("id");
    let off = json!({"op": "replace", "value": {"active": false, "displayName": "Gone"}});
    refused(&directory.patch(&format!("/Users/{owner}"), &off), 409, "");
    refused(&directory.delete(&format!("/Users/{owner}")), 409, "");
    let me = directory.owner.call("GET", "/v1/me").expect(200).json();
    assert!(me["active"] == true && me["name"] != "Gone", "something was changed: {me}");
}

#[test]
fn a_directory_does_not_manage_members_who_hold_more_than_its_token() {
    let directory = Directory::start();
    let few = directory.with_few_rights();
    let owner = directory.owner.call("GET", "/v1/me").expect(200).field("id");
    let path = format!("/Users/{owner}");
    for (method, body) in [
        ("PATCH", patch(&json!({"op": "replace", "path": "displayName", "value": "Taken"}))),
        ("PATCH", patch(&json!({"op": "replace", "path": "userName", "value": "taken@example.com"}))),
        ("PATCH", patch(&json!({"op": "replace", "path": "active", "value": false}))),
        ("PUT", json!({"userName": OWNER, "externalId": "x"})),
    ] {
        let answer = send(&few, method, &path, &body);
        refused(&answer, 403, "");
        assert_eq!(answer.field("error"), "role_mismatch");
    }
    refused(&few.send(Request::new("DELETE", &format!("/scim/v2{path}"))), 403, "");
    // Directories also state users that they do not change.
    send(&few, "PUT", &path, &json!({"userName": OWNER, "active": true})).expect(200);

    // A team with permissions that the token's owner lacks can neither be filled nor emptied.
    let reads = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
    let team = json!({"name": "Readers", "permissions": reads});
    let team = directory.owner.post("/v1/teams", &team).expect(201).field("id");
    let user = directory.user("dev@example.com");
    let member = json!([{"value": user}]);
    let path = format!("/Groups/{team}");
    for operation in [
        json!({"op": "add", "path": "members", "value": member}),
        json!({"op": "replace", "path": "members", "value": member}),
        json!({"op": "remove", "path": format!("members[value eq \"{user}\"]")}),
    ] {
        let answer = send(&few, "PATCH", &path, &patch(&operation));
        refused(&answer, 403, "");
        assert_eq!(answer.field("error"), "role_mismatch");
    }
    assert!(directory.members(&team).is_empty());
    let made = send(&few, "POST", "/Groups", &json!({"displayName": "New", "members": member})).expect(201);
    assert_eq!(directory.members(&made.field("id")), [user]);
}

#[test]
fn groups_are_teams_without_permissions() {
    let directory = Directory::start();
    let (one, two) = (directory.user("one@example.com"), directory.user("two@example.com"));
    let body = json!({"displayName": "Release", "externalId": "g-1", "members": [{"value": one}]});
    let made = directory.send("POST", "/Groups", &body).expect(201);
    let (id, group) = (made.field("id"), made.json());
    let location = format!("http://{}/scim/v2/Groups/{id}", directory.server.api());
    assert_eq!((made.header("location"), &group["externalId"]), (Some(location.as_str()), &json!("g-1")));
    let reference = format!("http://{}/scim/v2/Users/{one}", directory.server.api());
    let member = json!({"value": one, "$ref": reference, "display": "one@example.com", "type": "User"});
    assert_eq!(group["members"], json!([member]));
    let team = directory.owner.call("GET", &format!("/v1/teams/{id}")).expect(200).json();
    assert_eq!((&team["name"], &team["members"]), (&json!("Release"), &json!(1)));
    assert_eq!(team["permissions"], json!({"organization": [], "repositories": []}));

    // The permissions of the team apply to its members from the next request on.
    let reads = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
    directory.owner.patch(&format!("/v1/teams/{id}"), &json!({"permissions": reads})).expect(200);
    let effective = |id: &str| {
        let member = directory.owner.call("GET", &format!("/v1/members/{id}")).expect(200).json();
        member["effective_permissions"]["repositories"].as_array().unwrap().len()
    };
    assert_eq!((effective(&one), effective(&two)), (1, 0));
    let path = format!("/Groups/{id}");
    let change = |operation: Value| directory.patch(&path, &operation).expect(200);
    change(json!({"op": "add", "path": "members", "value": [{"value": two}]}));
    change(json!({"op": "remove", "path": format!("members[value eq \"{one}\"]")}));
    assert_eq!(directory.members(&id), std::slice::from_ref(&two));
    assert_eq!((effective(&one), effective(&two)), (0, 1));
    let listed = directory.owner.call("GET", &format!("/v1/teams/{id}/members")).expect(200).json();
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["source"]), (&json!(two), &json!("external")));

    // Replacing the list leaves members alone that were added by hand.
    let hand = directory.user("hand@example.com");
    directory.owner.call("PUT", &format!("/v1/teams/{id}/members/{hand}")).expect(204);
    let whole = json!({"displayName": "Shipping", "members": [{"value": one}]});
    directory.send("PUT", &path, &whole).expect(200);
    let mut expected = [one.clone(), hand.clone()];
    expected.sort();
    assert_eq!(directory.members(&id), expected);
    change(json!({"op": "remove", "path": "members"}));
    assert_eq!(directory.members(&id), std::slice::from_ref(&hand));
    change(json!({"op": "remove", "path": "members", "value": [{"value": hand}]}));
    assert!(directory.members(&id).is_empty());

    for filter in ["displayName eq \"shipping\"", "externalId eq \"g-1\"", &format!("id eq \"{id}\"")] {
        assert_eq!(directory.find("Groups", filter).len(), 1, "{filter}");
    }
    assert!(directory.find("Groups", "displayName eq \"Release\"").is_empty());
    let brief = directory.get(&format!("{path}?excludedAttributes=members")).expect(200).json();
    assert_eq!((brief.get("members"), &brief["displayName"]), (None, &json!("Shipping")));
    let named = directory.get("/Groups?attributes=displayName").expect(200).json();
    assert_eq!(named["Resources"][0]["displayName"], "Shipping");
    assert_eq!((named["Resources"][0].get("meta"), &named["Resources"][0]["id"]), (None, &json!(id)));

    refused(&directory.send("POST", "/Groups", &json!({"displayName": "Shipping"})), 409, "uniqueness");
    let same = json!({"displayName": "Other", "externalId": "g-1"});
    refused(&directory.send("POST", "/Groups", &same), 409, "uniqueness");
    let unknown = json!({"op": "add", "path": "members", "value": [{"value": "12345"}]});
    refused(&directory.patch(&path, &unknown), 400, "invalidValue");
    // A large group has more JSON tokens than other bodies may have.
    let large: Vec<Value> = (0..2_000).map(|_| json!({"value": one, "display": "one@example.com"})).collect();
    let large = json!({"op": "remove", "path": "members", "value": large});
    assert_eq!(directory.patch(&path, &large).expect(200).field("displayName"), "Shipping");
    directory.delete(&path).expect(204);
    refused(&directory.get(&path), 404, "");
}

#[test]
fn lists_have_pages_and_their_length() {
    let directory = Directory::start();
    let mut ids = vec![directory.owner.call("GET", "/v1/me").expect(200).field("id")];
    ids.extend((0..4).map(|number| directory.user(&format!("user{number}@example.com"))));
    // Service accounts are not users.
    directory.with_few_rights();
    let page = |query: &str| {
        let page = directory.get(&format!("/Users{query}")).expect(200).json();
        let listed = page["Resources"].as_array().unwrap().iter();
        let listed: Vec<String> = listed.map(|user| user["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!((&page["totalResults"], &page["itemsPerPage"]), (&json!(5), &json!(listed.len())));
        (page["startIndex"].as_u64().unwrap(), listed)
    };
    assert_eq!(page(""), (1, ids.clone()));
    assert_eq!(page("?startIndex=2&count=2"), (2, ids[1..3].to_vec()));
    assert_eq!(page("?startIndex=5&count=200"), (5, ids[4..].to_vec()));
    assert_eq!(page("?startIndex=6"), (6, Vec::new()));
    assert_eq!(page("?startIndex=0&count=100000"), (1, ids.clone()));
    assert_eq!(page("?startIndex=-3&count=-1"), (1, Vec::new()));
    assert_eq!(page("?unknown=1"), (1, ids));
    refused(&directory.get("/Users?count=many"), 400, "invalidValue");
    directory.group("One", &[]);
    let groups = directory.get("/Groups?count=0").expect(200).json();
    assert_eq!((&groups["totalResults"], &groups["Resources"]), (&json!(1), &json!([])));
}

#[test]
fn errors_have_the_form_of_the_standard() {
    let directory = Directory::start();
    let api = directory.server.api();
    let get = |client: &Client| client.send(Request::new("GET", "/scim/v2/Users"));
    refused(&get(&Client::new(api)), 401, "");
    refused(&get(&Client::new(api).with("Authorization", "Bearer pka_nonsense")), 401, "");
    let token = directory.owner.create_api_token("me", &["members"], &[]);
    let answer = get(&token.client);
    refused(&answer, 403, "");
    assert_eq!(answer.field("error"), "scope_mismatch_api");
    let reader = json!({"email": "dev@example.com", "password": PASSWORD, "permissions": {}});
    directory.owner.post("/v1/members", &reader).expect(201);
    let reader = Api::sign_in_as(&directory.server, "dev@example.com", PASSWORD);
    refused(&reader.call("GET", "/scim/v2/Users"), 403, "");
    refused(&reader.call("GET", "/scim/v2/Schemas"), 403, "");

    refused(&directory.get("/Nothing"), 404, "");
    refused(&directory.get("/Users/x"), 404, "");
    refused(&directory.get("/Users/%00"), 404, "");
    let wrong = directory.send("PATCH", "/Users", &json!({}));
    refused(&wrong, 405, "");
    assert!(wrong.header("allow").unwrap().contains("POST"));
    let raw = |kind: &str, body: &str| {
        let request = Request::new("POST", "/scim/v2/Users").header("Content-Type", kind);
        directory.client.send(request.body(body))
    };
    refused(&raw("text/plain", "{}"), 415, "");
    refused(&raw("application/scim+json", "{"), 400, "invalidSyntax");
    refused(&raw("application/scim+json; charset=utf-8", "[]"), 400, "invalidSyntax");
    raw("application/json", r#"{"userName": "json@example.com"}"#).expect(201);
    let large = Request::new("POST", "/scim/v2/Users").header("Content-Type", "application/scim+json");
    refused(&directory.client.send(large.header("Content-Length", "2000000")), 413, "");
}

#[test]
fn wrong_filters_values_paths_and_targets_have_their_own_codes() {
    let directory = Directory::start();
    let user = format!("/Users/{}", directory.user("dev@example.com"));
    let group = format!("/Groups/{}", directory.group("Team", &[]));
    let is = |answer: Response, scim_type: &str, code: &str| {
        refused(&answer, 400, scim_type);
        assert_eq!(answer.field("error"), code, "{}", answer.text());
    };
    for filter in [
        "userName sw \"a\"",
        "userName eq \"a\" or userName eq \"b\"",
        "userName pr",
        "title eq \"x\"",
        "emails[type eq \"home\"].value eq \"a\"",
        "externalId eq true",
        "externalId eq \"\\u0000\"",
        "nonsense",
    ] {
        let found = directory.get(&format!("/Users?filter={}", encoded(filter)));
        is(found, "invalidFilter", "invalid_filter");
    }
    let members = encoded("members.value eq \"1\"");
    is(directory.get(&format!("/Groups?filter={members}")), "invalidFilter", "invalid_filter");

    let post = |body: Value| directory.send("POST", "/Users", &body);
    is(post(json!({})), "invalidValue", "invalid_value");
    is(post(json!({"userName": "jane"})), "invalidValue", "invalid_value");
    is(post(json!({"userName": "a@example.com", "active": 1})), "invalidValue", "invalid_value");
    is(post(json!({"userName": "a@example.com", "externalId": "\u{0}"})), "invalidValue", "invalid_value");
    is(directory.send("POST", "/Groups", &json!({})), "invalidValue", "invalid_value");
    let long = json!({"displayName": "x".repeat(65)});
    is(directory.send("POST", "/Groups", &long), "invalidValue", "invalid_team_name");

    let on = |path: &str, operation: Value| directory.patch(path, &operation);
    is(on(&user, json!({"op": "add", "path": "a b", "value": 1})), "invalidPath", "invalid_path");
    let typed = json!({"op": "remove", "path": "members[type eq \"User\"]"});
    is(on(&group, typed), "invalidPath", "invalid_path");
    is(on(&user, json!({"op": "remove"})), "noTarget", "no_target");
    is(on(&user, json!({"op": "remove", "path": "userName"})), "mutability", "immutable_field");
    is(on(&group, json!({"op": "remove", "path": "displayName"})), "mutability", "immutable_field");
    is(on(&user, json!({"op": "move", "path": "active"})), "invalidSyntax", "invalid_request");
    is(directory.send("PATCH", &user, &json!({})), "invalidSyntax", "invalid_request");
    // Unknown attributes and attributes that only the server sets are ignored.
    for operation in [
        json!({"op": "replace", "path": "title", "value": "Engineer"}),
        json!({"op": "replace", "path": "id", "value": "7"}),
        json!({"op": "add", "value": {"meta": {"created": "2020"}, "roles": ["x"], "a b": 1}}),
    ] {
        on(&user, operation).expect(200);
    }
}

#[test]
fn the_server_describes_its_schemas() {
    let directory = Directory::start();
    let configuration = directory.get("/ServiceProviderConfig").expect(200).json();
    assert_eq!(configuration["patch"]["supported"], true);
    assert_eq!(configuration["bulk"]["supported"], false);
    assert_eq!(configuration["filter"], json!({"supported": true, "maxResults": 200}));
    assert_eq!(configuration["authenticationSchemes"][0]["type"], "oauthbearertoken");
    for (list, expected) in [("/Schemas", 2), ("/ResourceTypes", 2)] {
        let listed = directory.get(list).expect(200).json();
        assert_eq!(listed["totalResults"], json!(expected));
        for one in listed["Resources"].as_array().unwrap() {
            let id = one["id"].as_str().unwrap();
            assert_eq!(&directory.get(&format!("{list}/{id}")).expect(200).json(), one);
            assert!(one["meta"]["location"].as_str().unwrap().ends_with(id));
        }
        refused(&directory.get(&format!("{list}/Nothing")), 404, "");
    }
    let user = directory.get("/Schemas/urn:ietf:params:scim:schemas:core:2.0:User").expect(200).json();
    let names: Vec<&str> =
        user["attributes"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["userName", "name", "displayName", "emails", "active"]);
}

#[test]
fn changes_of_a_directory_are_in_the_audit_log() {
    let directory = Directory::start();
    let user = directory.user("dev@example.com");
    let group = directory.group("Release", &[&user]);
    directory.patch(&format!("/Users/{user}"), &json!({"op": "replace", "path": "active", "value": false}));
    directory.delete(&format!("/Groups/{group}")).expect(204);
    let renamed = json!({"op": "replace", "path": "userName", "value": "new@example.com"});
    directory.patch(&format!("/Users/{user}"), &renamed).expect(200);
    let events = directory.owner.call("GET", "/v1/audit-events?limit=200").expect(200).json();
    let actions: Vec<(&str, &str)> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["credential"].as_str().is_some_and(|name| name.starts_with("api-token:")))
        .map(|event| (event["action"].as_str().unwrap(), event["subject"].as_str().unwrap()))
        .collect();
    assert_eq!(events["items"][0]["detail"], json!({"email": "new@example.com"}));
    let expected = [
        ("set_member_email", "dev@example.com"),
        ("delete_team", "Release"),
        ("suspend_member", "dev@example.com"),
        ("add_team_member", "Release dev@example.com"),
        ("create_team", "Release"),
        ("create_member", "dev@example.com"),
    ];
    assert_eq!(actions, expected);
}
