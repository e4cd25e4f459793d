//! What nobody gets who has no right to it: not out of the database, not by a code that outlived its maker's rights, not by managing
//! what they may not read, not by asking for what they may not know of, and not under another's name.

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

/// A member whom the owner makes, with PASSWORD: its id.
#[track_caller]
fn member(owner: &Api, email: &str, permissions: &Value) -> String {
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

/// The same, signed in.
#[track_caller]
fn signed_in(server: &Server, email: &str, permissions: &Value) -> Api {
    member(&Api::sign_in(server), email, permissions);
    Api::sign_in_as(server, email, PASSWORD)
}
