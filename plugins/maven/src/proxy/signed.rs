//! What an upstream has of signatures of a file, as the host judges it: `.sigstore.json`, `.sigstore` and `.asc` beside it.
//!
//! They are asked for where a policy judges by them, since most clients never do. A file of which there are some is fetched first, for its
//! SHA-256: upstreams need not say it, and the host judges by it. What was stated is noted, so that a request that finds nothing new changes nothing.

use super::stated::Policy;
use super::{ask_unshown, encoded, good, header, is_page};
use crate::busy;
use crate::layout::{FilePath, Item};
use crate::records;
use crate::statements::{Part, SUFFIXES, statement};
use packhouse_sdk::{
    Blob, Context, Digest, Error, Expectation, Failure, Freshness, ReadAt, Repository, Settings, Statement,
    Step, Version,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What was stated of a file.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
struct Stated {
    /// The file's.
    sha256: Digest,
    /// The signatures' endings.
    by: BTreeSet<String>,
}

/// How a file of a proxy stands to policies that judge by what is signed.
pub(super) enum Judged {
    /// No policy does, or nothing is known to be signed of it.
    AsItIs,
    /// It is a signature of the file at this path, which needs none itself and is judged as that file is.
    SignatureOf(String),
    /// It is to be this file, of which something is signed.
    Signed(Digest),
}

/// States what the upstream has that is signed of this file and was not stated yet. Where it does not answer, what is known stands.
///
/// # Errors
/// 503 where others are faster each time; those of a fetch of the file.
pub(super) fn state(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Judged, Failure> {
    let Some(item) = file.item.as_ref() else { return Ok(Judged::AsItIs) };
    if !Settings::of(proxy)?.judged_by_provenance {
        return Ok(Judged::AsItIs);
    }
    match Part::of(file) {
        Part::Signature(signed) => {
            state_file(cx, proxy, item, &FilePath { path: signed.to_owned(), item: file.item.clone() })?;
            Ok(Judged::SignatureOf(signed.to_owned()))
        }
        Part::Neither => Ok(Judged::AsItIs),
        Part::File => state_file(cx, proxy, item, file),
    }
}

fn state_file(cx: &Context, proxy: &Repository, item: &Item, file: &FilePath) -> Result<Judged, Failure> {
    let (key, mut found, mut fetched) = (records::stated(&file.path), None, None);
    proxy.update_if_needed(busy, |change| {
        let before = proxy.get_json::<Stated>(&key)?;
        let known = before.as_ref().map(|entry| entry.value.clone());
        let found = found.get_or_insert_with(|| signatures(cx, proxy, file));
        let new = |known: &Stated| found.iter().any(|(suffix, _)| !known.by.contains(*suffix));
        match &known {
            None if found.is_empty() => return Ok(Step::Done(Judged::AsItIs)),
            Some(known) if !new(known) => return Ok(Step::Done(Judged::Signed(known.sha256.clone()))),
            _ => {}
        }
        if fetched.is_none() {
            let blob = whole(cx, proxy, file)?;
            fetched = Some((blob.sha256()?, blob.size()?));
        }
        let Some((sha256, size)) = fetched.clone() else { return Ok(Step::Done(Judged::AsItIs)) };
        let mut by: BTreeSet<String> = match known {
            // What was stated of other bytes says nothing of these, and is not counted for them.
            Some(known) if known.sha256 == sha256 => known.by,
            _ => BTreeSet::new(),
        };
        change.show(&shown(item).file(file.path.as_str(), sha256.clone(), size));
        for (suffix, bytes) in found.iter().filter(|(suffix, _)| !by.contains(*suffix)) {
            let source = format!("{}{suffix}", file.path);
            change.attest(&statement(item, &file.path, &source, sha256.clone(), bytes.clone()));
        }
        by.extend(found.iter().map(|(suffix, _)| (*suffix).to_owned()));
        let stated = Stated { sha256: sha256.clone(), by };
        change.put_json(&key, &stated, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(Step::Commit(Judged::Signed(sha256)))
    })
}

/// The signatures that the upstream has, each with its ending; without bytes where it is too large to be judged. All are asked for at once.
fn signatures(cx: &Context, proxy: &Repository, file: &FilePath) -> Vec<(&'static str, Vec<u8>)> {
    let most = Statement::MAX_BYTES as u64;
    let ask = |suffix: &'static str| {
        let path = format!("{}{suffix}", file.path);
        let fetch = cx.upstream("GET", &encoded(&path)).fresh(Freshness::Immutable).limit(most);
        Some((suffix, path, fetch.metadata().start(proxy).ok()?))
    };
    let asked: Vec<_> = SUFFIXES.into_iter().filter_map(ask).collect();
    let answers = asked.into_iter().filter_map(|(suffix, path, reply)| {
        let body = match reply.status() {
            Ok(200) if !is_page(&reply.headers().ok()?, &path) => {
                reply.body().and_then(|body| body.read_all(most))
            }
            Err(error) => Err(error),
            Ok(_) => return None,
        };
        match body {
            Ok(bytes) => Some((suffix, bytes)),
            Err(Error::UpstreamTooLarge { .. }) => Some((suffix, Vec::new())),
            Err(_) => None,
        }
    });
    answers.collect()
}

/// The file as the upstream has it, checked as ever; it is not shown yet, and so is not judged yet.
fn whole(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Blob, Failure> {
    let mut reply = ask_unshown(cx, "GET", file).metadata().start(proxy)?;
    let headers = good(&reply, &file.path)?;
    let policy = Policy::of(proxy)?;
    if header(&headers, "age").is_none()
        && policy == Policy::Fail
        && let Some(stated) = policy.stated(cx, proxy, file, &headers)?
    {
        reply.expect(&stated);
    }
    let blob = reply.body()?;
    blob.size()?;
    Ok(blob)
}

fn shown(item: &Item) -> Version {
    Version::new(item.name(), &item.version)
        .property("group", &item.group)
        .property("artifact", &item.artifact)
}
