//! The requests of Microsoft Entra ID, as its documentation shows them ("Tutorial: Develop and plan
//! provisioning for a SCIM endpoint in Microsoft Entra ID").

use packhouse_tests::Response;
use serde_json::{Value, json};

use super::scim::{Directory, refused};

const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

fn patch(directory: &Directory, path: &str, operations: Value) -> Response {
    directory.send("PATCH", path, &json!({"schemas": [PATCH], "Operations": operations}))
}

/// Creates a user as in the documentation; returns its id.
#[track_caller]
fn create(directory: &Directory, user_name: &str) -> String {
    let user = json!({
        "schemas": [USER, ENTERPRISE],
        "externalId": format!("id-of-{user_name}"),
        "userName": user_name,
        "active": true,
        "emails": [{"primary": true, "type": "work", "value": "test_user_fd0ea19b@testuser.com"}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
        "roles": [],
        ENTERPRISE: {"department": "Research", "manager": {"value": "7"}},
    });
    directory.send("POST", "/Users", &user).expect(201).field("id")
}

#[test]
fn users_are_provisioned() {
    let directory = Directory::start();
    // The test of the connection looks a random user up.
    let absent = "userName eq \"Test_User_dfeef4c5-5681-4387-b016-bdf221e82081@testuser.com\"";
    assert!(directory.find("Users", absent).is_empty());
    let id = create(&directory, "Test_User_ab6490ee@testuser.com");
    let path = format!("/Users/{id}");
    let user = directory.get(&path).expect(200).json();
    assert_eq!(user["userName"], "test_user_ab6490ee@testuser.com");
    assert_eq!((&user["displayName"], &user["active"]), (&json!("givenName familyName"), &json!(true)));
    assert_eq!(directory.find("Users", "userName eq \"Test_User_ab6490ee@testuser.com\"").len(), 1);
    assert_eq!(directory.find("Users", "externalId eq \"id-of-Test_User_ab6490ee@testuser.com\"").len(), 1);

    let several = json!([
        {"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "updatedEmail@microsoft.com"},
        {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
        {"op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "Sales"},
    ]);
    let changed = patch(&directory, &path, several).expect(200).json();
    assert_eq!(changed["displayName"], "givenName updatedFamilyName");
    assert_eq!(changed["userName"], "test_user_ab6490ee@testuser.com", "the address follows the user name");
    let name = "5b50642d-79fc-4410-9e90@testuser.com";
    let renamed = json!([{"op": "Replace", "path": "userName", "value": name}]);
    let renamed = patch(&directory, &path, renamed).expect(200).json();
    assert_eq!((&renamed["userName"], &renamed["emails"][0]["value"]), (&json!(name), &json!(name)));
    // The older form of some operations has no path.
    let attributes = json!({"displayName": "Older", "emails[type eq \"work\"].value": "x@y.example"});
    let older = json!([{"op": "Add", "value": attributes}]);
    assert_eq!(patch(&directory, &path, older).expect(200).json()["displayName"], "Older");

    for (off, on) in [(json!(false), json!(true)), (json!("False"), json!("True"))] {
        let set = |value: Value| {
            let operations = json!([{"op": "Replace", "path": "active", "value": value}]);
            patch(&directory, &path, operations)
        };
        assert_eq!(set(off).expect(200).json()["active"], json!(false));
        assert_eq!(set(on).expect(200).json()["active"], json!(true));
    }
    directory.delete(&path).expect(204);
    refused(&directory.get(&path), 404, "");
}

#[test]
fn a_user_name_that_is_not_an_address_needs_a_primary_one() {
    let directory = Directory::start();
    let id = create(&directory, "Test_User_ab6490ee-1e48-479e");
    let user = directory.get(&format!("/Users/{id}")).expect(200).json();
    assert_eq!(user["userName"], "test_user_fd0ea19b@testuser.com");
    // Entra finds the user by the identifier that it has given.
    let found = directory.find("Users", "externalId eq \"id-of-Test_User_ab6490ee-1e48-479e\"");
    assert_eq!(found[0]["id"], json!(id));
}

#[test]
fn groups_are_provisioned() {
    let directory = Directory::start();
    let (one, two) = (create(&directory, "one@testuser.com"), create(&directory, "two@testuser.com"));
    let extension = "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group";
    let group = json!({
        "schemas": [GROUP, extension], "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
        "displayName": "displayName", "meta": {"resourceType": "Group"},
    });
    let made = directory.send("POST", "/Groups", &group).expect(201);
    assert_eq!(made.json()["members"], json!([]));
    let id = made.field("id");
    let path = format!("/Groups/{id}");
    let brief = directory.get(&format!("{path}?excludedAttributes=members")).expect(200).json();
    assert_eq!((&brief["displayName"], brief.get("members")), (&json!("displayName"), None));
    let query = "excludedAttributes=members&filter=displayName+eq+%22displayName%22";
    let found = directory.get(&format!("/Groups?{query}")).expect(200).json();
    assert_eq!((&found["totalResults"], &found["Resources"]), (&json!(1), &json!([brief])));

    let renamed = json!([{"op": "Replace", "path": "displayName", "value": "1879db59displayName"}]);
    assert_eq!(patch(&directory, &path, renamed).expect(200).field("displayName"), "1879db59displayName");
    let add = |id: &str| json!([{"op": "Add", "path": "members", "value": [{"$ref": null, "value": id}]}]);
    patch(&directory, &path, add(&one)).expect(200);
    patch(&directory, &path, add(&two)).expect(200);
    patch(&directory, &path, add(&two)).expect(200);
    let mut both = [one.clone(), two.clone()];
    both.sort();
    assert_eq!(directory.members(&id), both);
    let listed = json!([{"op": "Remove", "path": "members", "value": [{"$ref": null, "value": one}]}]);
    patch(&directory, &path, listed).expect(200);
    assert_eq!(directory.members(&id), std::slice::from_ref(&two));
    let selected = json!([{"op": "remove", "path": format!("members[value eq \"{two}\"]")}]);
    patch(&directory, &path, selected.clone()).expect(200);
    patch(&directory, &path, selected).expect(200);
    assert!(directory.members(&id).is_empty());
    directory.delete(&path).expect(204);
}
