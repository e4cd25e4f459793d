//! `cargo owner`: who may publish is said by the rights that members have in the repository, for all of its crates alike.

use crate::name::Name;
use crate::records::{VersionRecord, missing};
use packhouse_sdk::{Context, Failure, Params, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Those who have published versions of a crate here.
pub(crate) fn list(cx: &Context, _request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let said = params.segment("name");
    let name = Name::new(said).ok_or_else(|| missing(said))?;
    let (mut names, mut there) = (BTreeSet::new(), false);
    for source in cx.hosted()? {
        for record in VersionRecord::all(source, &name)? {
            there = true;
            names.extend(record.publisher);
        }
    }
    if !there {
        return Err(missing(said));
    }
    let user = |(at, login): (usize, String)| json!({"id": at + 1, "login": login, "name": null});
    let users: Vec<Value> = names.into_iter().enumerate().map(user).collect();
    Ok(Response::json(&json!({"users": users}))?.revalidate())
}

/// Nothing is changed here.
pub(crate) fn refuse(_cx: &Context, _request: &Request, _params: &Params<'_>) -> Result<Response, Failure> {
    Err(Failure::denied(
        "A crate has no owners of its own here: whoever may write to this repository may publish and yank its crates. \
         Members and their rights are managed in the portal",
    ))
}
