//! Images: a layer, uploaded in one request or in a session of several, and a manifest that refers
//! to it.

use super::{Answer, PackageVersion, get};
use crate::history::Outcome;
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::{Client, Request, Response, digests};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;

fn path(package: &str, rest: &str) -> String {
    format!("/v2/repositories/oci/{package}/{rest}")
}

/// Publishes an image: its blobs, then its manifest, which alone makes the image visible. The
/// outcome covers all requests. An unknown outcome may therefore mean that the manifest was not
/// sent.
pub(super) fn publish(client: &Client, item: &PackageVersion) -> Outcome {
    for bytes in [item.bytes.as_slice(), b"{}"] {
        // Longer layers use a session.
        let pushed =
            if bytes.len() > 50_000 { session(client, item, bytes) } else { whole(client, item, bytes) };
        let outcome = Outcome::of(&pushed, &[201]);
        if outcome != Outcome::Done {
            return not_a_session(outcome);
        }
    }
    let manifest = manifest(&[&item.bytes]);
    let target = path(&item.package, &format!("manifests/{}", item.version));
    let request = Request::new("PUT", &target).header("Content-Type", MANIFEST).body(manifest);
    Outcome::of(&client.try_send(request), &[201])
}

/// Turns a 404 during an upload into an outcome that is always wrong. A server must not forget a
/// session after it has answered a request of this session.
fn not_a_session(outcome: Outcome) -> Outcome {
    if outcome == Outcome::NotThere {
        Outcome::Odd("404 in the middle of a session".to_owned())
    } else {
        outcome
    }
}

fn whole(client: &Client, item: &PackageVersion, bytes: &[u8]) -> Answer {
    let target = path(&item.package, &format!("blobs/uploads/?digest={}", digest(bytes)));
    client.try_send(Request::new("POST", &target).body(bytes))
}

fn session(client: &Client, item: &PackageVersion, bytes: &[u8]) -> Answer {
    let begun =
        client.try_send(Request::new("POST", &path(&item.package, "blobs/uploads/")).body(Vec::new()))?;
    let Some(session) = begun.header("location").filter(|_| begun.status == 202).map(below) else {
        return Ok(begun);
    };
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for (from, part) in [(0, first), (first.len(), second)] {
        let range = format!("{from}-{}", from + part.len() - 1);
        let request = Request::new("PATCH", &session).header("Content-Range", &range);
        let added = client.try_send(request.header("Content-Type", "application/octet-stream").body(part))?;
        if added.status != 202 {
            return Ok(added);
        }
    }
    let end = format!("{session}?digest={}", digest(bytes));
    client.try_send(Request::new("PUT", &end).body(Vec::new()))
}

/// The path of a URL.
fn below(address: &str) -> String {
    match address.split_once("://") {
        Some((_, rest)) => format!("/{}", rest.split_once('/').map(|(_, path)| path).unwrap_or_default()),
        None => address.to_owned(),
    }
}

/// Reads the manifest and the layer that it names. An image without its layer counts as missing.
pub(super) fn read(client: &Client, package: &str, version: &str) -> (Outcome, String) {
    let request =
        Request::new("GET", &path(package, &format!("manifests/{version}"))).header("Accept", MANIFEST);
    let answer = client.try_send(request);
    let outcome = Outcome::of(&answer, &[200]);
    let Some(answer) = answer.ok().filter(|_| outcome == Outcome::Done) else {
        return (outcome, String::new());
    };
    match layer(client, package, &answer) {
        Ok(answer) => {
            let digest = digests::sha256(&answer.body);
            (Outcome::of(&Ok(answer), &[200]), digest)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            (Outcome::Odd(format!("no manifest: {:.300}", answer.text())), String::new())
        }
        Err(_) => (Outcome::Broken, String::new()),
    }
}

fn layer(client: &Client, package: &str, manifest: &Response) -> Answer {
    let manifest: Value = serde_json::from_slice(&manifest.body)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let digest = manifest["layers"][0]["digest"].as_str().unwrap_or_default();
    get(client, &path(package, &format!("blobs/{digest}")))
}

pub(super) fn index(package: &str) -> String {
    path(package, "tags/list")
}

pub(super) fn listed(answer: &Response) -> Option<BTreeSet<String>> {
    let list: Value = serde_json::from_slice(&answer.body).ok()?;
    match list.get("tags")? {
        Value::Array(tags) => tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect(),
        _ => Some(BTreeSet::new()),
    }
}
