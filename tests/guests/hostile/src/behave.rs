//! Ordinary behaviour of a plugin.

use std::sync::atomic::Ordering;

use crate::packhouse::format::blobs::{Blob, Writer};
use crate::packhouse::format::host;
use crate::packhouse::format::http::{Failure, Request, Response, ResponseOptions};
use crate::packhouse::format::records::{Expectation, Outcome, Repository, Transaction};
use crate::packhouse::format::types::{Error, Header};
use crate::packhouse::format::upstream::{Fetch, Reply};
use crate::{ROUTED, blob, refusal, refused, second, text};

/// Returns the ordinary response for this path, or `None` if the path selects an attack.
pub fn respond(
    path: &str,
    request: &Request,
    target: &Repository,
    others: &[Repository],
) -> Option<Result<Response, Failure>> {
    Some(match path {
        "ok" | "known-alone" => Ok(text(200, "ok")),
        "routed-here" | "routed-here-publish" => {
            // Reading the query makes the host cache an answer for each query separately.
            request.query();
            Ok(text(200, ROUTED.load(Ordering::Relaxed).to_string()))
        }
        "put" => put(request, target),
        "keep" => keep(request, target).map(|digest| text(202, digest)),
        "keep-refuse" => keep(request, target).and_then(|digest| Err(refusal(409, "refused", &digest))),
        "get" => get(&second(request), target),
        "decode" => decode(request),
        "digest" => digest(request),
        "clock" => Ok(text(200, host::now().to_string())),
        "caller" => Ok(text(200, request.caller().unwrap_or_default())),
        "member" => member(&second(request), others),
        "modified" => Ok(modified()),
        "large" => large(),
        "upstream" => upstream(target),
        _ => return None,
    })
}

/// Stores the body without a record that refers to it.
fn keep(request: &Request, target: &Repository) -> Result<String, Failure> {
    let body = request.take_body().ok_or_else(|| refusal(400, "no_body", ""))?;
    target.keep(&body).map_err(refused)
}

/// Stores the body and creates a record for it, which must not exist yet.
fn put(request: &Request, target: &Repository) -> Result<Response, Failure> {
    let digest = keep(request, target)?;
    let transaction = target.begin().map_err(refused)?;
    let key = format!("file/{}", second(request));
    transaction.put(&key, digest.as_bytes(), Expectation::Absent, &[digest.clone()]);
    match Transaction::commit(transaction).map_err(refused)? {
        Outcome::Applied(_) => Ok(text(201, digest)),
        Outcome::Stale(key) => Err(refusal(409, "exists", &key)),
        Outcome::UnknownBlobs(_) => Err(refusal(500, "unknown_blobs", "")),
    }
}

fn get(name: &str, target: &Repository) -> Result<Response, Failure> {
    let missing = || refusal(404, "not_found", name);
    let entry = target.get(&format!("file/{name}")).map_err(refused)?.ok_or_else(missing)?;
    let digest = String::from_utf8_lossy(&entry.value).into_owned();
    Ok(blob(target.blob(&digest).map_err(refused)?.ok_or_else(missing)?))
}

/// Answers with the decoded body, at most 1 MiB.
fn decode(request: &Request) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| refusal(400, "no_body", ""))?;
    Ok(blob(body.decode(&second(request), 1 << 20, &["sha1".to_owned()]).map_err(refused)?))
}

fn digest(request: &Request) -> Result<Response, Failure> {
    let body = request.take_body().ok_or_else(|| refusal(400, "no_body", ""))?;
    Ok(text(200, body.digest(&second(request)).map_err(refused)?))
}

fn member(key: &str, others: &[Repository]) -> Result<Response, Failure> {
    let found = others.iter().find_map(|member| member.get(key).ok().flatten());
    found
        .map(|entry| text(200, String::from_utf8_lossy(&entry.value)))
        .ok_or_else(|| refusal(404, "not_found", key))
}

fn modified() -> Response {
    let options = ResponseOptions::new();
    options.modified(1_000);
    let header = Header { name: "X-Kind".to_owned(), value: "dated".to_owned() };
    Response { headers: vec![header], options: Some(options), ..text(200, "dated") }
}

fn large() -> Result<Response, Failure> {
    let writer = Writer::new();
    for _ in 0..4 {
        writer.write(&vec![7; 1 << 20]).map_err(refused)?;
    }
    let written: Result<Blob, Error> = Writer::finish(writer);
    Ok(blob(written.map_err(refused)?))
}

fn upstream(target: &Repository) -> Result<Response, Failure> {
    let fetch = Fetch::new("GET", "index.json");
    let reply: Reply = Fetch::start(fetch, target).map_err(refused)?;
    Ok(text(200, reply.status().map_err(refused)?.to_string()))
}
