//! Responses to `cargo owner`. Crates have no owners of their own: every member with write
//! permission in the repository may publish all of its crates.

use crate::name::Name;
use crate::records::{VersionRecord, missing};
use packhouse_sdk::{Context, Failure, Params, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Lists the publishers of a crate's versions in this repository.
pub(crate) fn list(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let spelling = params.segment("name");
    let name = Name::new(spelling).ok_or_else(|| missing(spelling))?;
    let (mut names, mut exists) = (BTreeSet::new(), false);
    for source in cx.hosted()? {
        for record in VersionRecord::all(source, &name)? {
            exists = true;
            names.extend(record.publisher);
        }
    }
    if !exists {
        return Err(missing(spelling));
    }
    let user = |(at, login): (usize, String)| json!({"id": at + 1, "login": login, "name": null});
    let users: Vec<Value> = names.into_iter().enumerate().map(user).collect();
    Ok(Response::json(&json!({"users": users}))?.revalidate())
}

/// Refuses to change owners.
pub(crate) fn refuse(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Err(Failure::denied(
        "A crate has no owners of its own here: everyone with write permission in this repository may publish and yank its crates. \
         Manage members and their permissions in the portal",
    ))
}
