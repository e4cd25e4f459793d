//! The requests of Okta, as its documentation shows them ("SCIM 2.0 protocol reference").

use packhouse_tests::Response;
use serde_json::{Value, json};

use super::scim::{Directory, refused};

const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

fn user(name: &str) -> Value {
    json!({
        "schemas": [USER],
        "userName": name,
        "name": {"givenName": "Test", "familyName": "User"},
        "emails": [{"primary": true, "value": name, "type": "work"}],
        "displayName": "Test User",
        "locale": "en-US",
        "externalId": format!("00u-{name}"),
        "groups": [],
        "password": "1mz050nq",
        "active": true,
    })
}

fn patch(directory: &Directory, path: &str, operations: Value) -> Response {
    directory.send("PATCH", path, &json!({"schemas": [PATCH], "Operations": operations}))
}

#[test]
fn users_are_created_imported_updated_and_deactivated() {
    let directory = Directory::start();
    let lookup = "/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100";
    let absent = directory.get(lookup).expect(200).json();
    assert_eq!((&absent["totalResults"], &absent["Resources"]), (&json!(0), &json!([])));
    assert_eq!(absent["schemas"], json!(["urn:ietf:params:scim:api:messages:2.0:ListResponse"]));
    let made = directory.send("POST", "/Users", &user("test.user@okta.local")).expect(201).json();
    assert_eq!((&made["schemas"], &made["displayName"]), (&json!([USER]), &json!("Test User")));
    assert_eq!(made.get("password"), None);
    refused(&directory.send("POST", "/Users", &user("test.user@okta.local")), 409, "uniqueness");
    assert_eq!(directory.get(lookup).expect(200).json()["Resources"], json!([made]));
    let imported = directory.get("/Users?startIndex=1&count=100").expect(200).json();
    assert_eq!((&imported["totalResults"], &imported["Resources"][1]), (&json!(2), &made));

    let path = format!("/Users/{}", made["id"].as_str().unwrap());
    let mut updated = made.clone();
    updated["name"] = json!({"givenName": "Another", "familyName": "Name"});
    updated["displayName"] = json!("Another Name");
    let updated = directory.send("PUT", &path, &updated).expect(200).json();
    assert_eq!((&updated["id"], &updated["displayName"]), (&made["id"], &json!("Another Name")));
    let set = |active: bool| {
        let operations = json!([{"op": "replace", "value": {"active": active}}]);
        patch(&directory, &path, operations)
    };
    assert_eq!(set(false).expect(200).json()["active"], json!(false));
    assert_eq!(set(true).expect(200).json()["active"], json!(true));
    let mut inactive = updated;
    inactive["active"] = json!(false);
    assert_eq!(directory.send("PUT", &path, &inactive).expect(200).json()["active"], json!(false));
    refused(&directory.get("/Users/23a35c27-23d3-4c03-b4c5-6443c09e7173"), 404, "");
}

#[test]
fn groups_are_pushed() {
    let directory = Directory::start();
    let create = |name: &str| directory.send("POST", "/Users", &user(name)).expect(201).field("id");
    let (one, two) = (create("one@okta.local"), create("two@okta.local"));
    let empty = directory.get("/Groups?startIndex=1&count=100").expect(200).json();
    assert_eq!(empty["totalResults"], 0);
    let group = json!({"schemas": [GROUP], "displayName": "Test SCIMv2", "members": []});
    let made = directory.send("POST", "/Groups", &group).expect(201).json();
    assert_eq!((&made["displayName"], &made["members"]), (&json!("Test SCIMv2"), &json!([])));
    let id = made["id"].as_str().unwrap();
    let path = format!("/Groups/{id}");
    let renamed = json!([{"op": "replace", "value": {"id": id, "displayName": "Test SCIMv0"}}]);
    assert_eq!(patch(&directory, &path, renamed).expect(200).field("displayName"), "Test SCIMv0");

    let member = json!({"value": one, "display": "one@okta.local"});
    let joined = json!([{"op": "add", "path": "members", "value": [member]}]);
    patch(&directory, &path, joined).expect(200);
    let swapped = json!([
        {"op": "remove", "path": format!("members[value eq \"{one}\"]")},
        {"op": "add", "path": "members", "value": [{"value": two, "display": "two@okta.local"}]},
    ]);
    patch(&directory, &path, swapped).expect(200);
    assert_eq!(directory.members(id), std::slice::from_ref(&two));
    let whole = json!([{"op": "replace", "path": "members", "value": [
        {"value": one, "display": "one@okta.local"}, {"value": two, "display": "two@okta.local"},
    ]}]);
    patch(&directory, &path, whole).expect(200);
    assert_eq!(directory.members(id).len(), 2);
    let members = json!([{"value": one}]);
    let put = json!({"schemas": [GROUP], "id": id, "displayName": "Test SCIMv2", "members": members});
    let put = directory.send("PUT", &path, &put).expect(200).json();
    assert_eq!((&put["displayName"], &put["members"][0]["value"]), (&json!("Test SCIMv2"), &json!(one)));
    assert_eq!(directory.members(id), [one]);
    directory.delete(&path).expect(204);
    refused(&directory.delete(&path), 404, "");
}
