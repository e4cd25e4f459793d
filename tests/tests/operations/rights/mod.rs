//! Attempts of members to gain rights that they lack. They use the content of the database, codes
//! of members who lost rights, and the management of repositories that they may not read. Other
//! attempts probe for names, or use a name that looks like the name of another account.

mod codes;
mod dump;
mod files;
mod names;
mod order;
mod reading;

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Response, Server};
use serde_json::{Value, json};

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.field("error"), code, "{}", answer.text());
}

/// Permissions in the organization, and actions in one repository, or in all (`*`).
fn permissions(organization: &[&str], repository: &str, actions: &[&str]) -> Value {
    json!({"organization": organization, "repositories": [{"repository": repository, "actions": actions}]})
}

/// Creates a member with PASSWORD as the owner, and returns its id.
#[track_caller]
fn member(owner: &Api, email: &str, permissions: &Value) -> String {
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

/// Creates a member with PASSWORD and signs the member in.
#[track_caller]
fn signed_in(server: &Server, email: &str, permissions: &Value) -> Api {
    member(&Api::sign_in(server), email, permissions);
    Api::sign_in_as(server, email, PASSWORD)
}
