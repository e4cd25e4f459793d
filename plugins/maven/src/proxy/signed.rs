//! Signatures that an upstream stores beside a file: `.sigstore.json`, `.sigstore` and `.asc`. The
//! plugin states them to the host, which judges them.
//!
//! If a policy judges by signatures, the plugin itself requests them, because most clients never
//! do. If a file has signatures, the plugin first fetches the whole file and computes its SHA-256.
//! The host needs this digest to judge the signatures, and an upstream need not state it. The
//! plugin records the signatures that it stated to the host, so that a request without new
//! signatures changes nothing.

use super::stated::ChecksumPolicy;
use super::{encoded, header, is_page, success_headers, unlisted_fetch};
use crate::busy;
use crate::layout::{FilePath, VersionFile};
use crate::records;
use crate::statements::{SUFFIXES, SignatureRole, statement};
use packhouse_sdk::{
    Blob, Context, Digest, Error, Expectation, Failure, Freshness, ReadAt, Repository, Settings, Statement,
    Step, Version,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The signatures that the plugin has stated to the host for one file.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
struct StatedSignatures {
    /// SHA-256 of the file.
    sha256: Digest,
    /// File name endings of the signatures.
    by: BTreeSet<String>,
}

/// The signature status of a file of a proxy, for policies that judge by signatures.
pub(super) enum SignatureStatus {
    /// No policy judges by signatures, or the file has no known signatures.
    NotRequired,
    /// The file is a signature of the file at this path. It needs no signature itself, and is
    /// judged like the signed file.
    SignatureOf(String),
    /// The file has signatures, and must have this digest.
    Signed(Digest),
}

/// States to the host the signatures of this file that the upstream has and the record lacks.
/// Returns the status of the file. If the upstream does not answer, the recorded signatures stay.
///
/// # Errors
/// 503 if every retry of the commit lost the race; errors of a fetch of the file.
pub(super) fn state(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<SignatureStatus, Failure> {
    let Some(item) = file.item.as_ref() else { return Ok(SignatureStatus::NotRequired) };
    if !Settings::of(proxy)?.judged_by_provenance {
        return Ok(SignatureStatus::NotRequired);
    }
    match SignatureRole::of(file) {
        SignatureRole::Signature(signed) => {
            state_file(cx, proxy, item, &FilePath { path: signed.to_owned(), item: file.item.clone() })?;
            Ok(SignatureStatus::SignatureOf(signed.to_owned()))
        }
        SignatureRole::Neither => Ok(SignatureStatus::NotRequired),
        SignatureRole::File => state_file(cx, proxy, item, file),
    }
}

fn state_file(
    cx: &Context,
    proxy: &Repository,
    item: &VersionFile,
    file: &FilePath,
) -> Result<SignatureStatus, Failure> {
    let (key, mut found, mut fetched) = (records::stated(&file.path), None, None);
    proxy.update_if_needed(busy, |change| {
        let before = proxy.get_json::<StatedSignatures>(&key)?;
        let known = before.as_ref().map(|entry| entry.value.clone());
        let found = found.get_or_insert_with(|| signatures(cx, proxy, file));
        let new = |known: &StatedSignatures| found.iter().any(|(suffix, _)| !known.by.contains(*suffix));
        match &known {
            None if found.is_empty() => return Ok(Step::Done(SignatureStatus::NotRequired)),
            Some(known) if !new(known) => {
                return Ok(Step::Done(SignatureStatus::Signed(known.sha256.clone())));
            }
            _ => {}
        }
        if fetched.is_none() {
            let blob = fetch_whole(cx, proxy, file)?;
            fetched = Some((blob.sha256()?, blob.size()?));
        }
        let Some((sha256, size)) = fetched.clone() else {
            return Ok(Step::Done(SignatureStatus::NotRequired));
        };
        let mut by: BTreeSet<String> = match known {
            // Signatures that were stated for other bytes are stated again for these bytes.
            Some(known) if known.sha256 == sha256 => known.by,
            _ => BTreeSet::new(),
        };
        change.show(&listed_version(item).file(file.path.as_str(), sha256.clone(), size));
        for (suffix, bytes) in found.iter().filter(|(suffix, _)| !by.contains(*suffix)) {
            let source = format!("{}{suffix}", file.path);
            change.attest(&statement(item, &file.path, &source, sha256.clone(), bytes.clone()));
        }
        by.extend(found.iter().map(|(suffix, _)| (*suffix).to_owned()));
        let stated = StatedSignatures { sha256: sha256.clone(), by };
        change.put_json(&key, &stated, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(Step::Commit(SignatureStatus::Signed(sha256)))
    })
}

/// Requests all possible signatures of a file from the upstream in parallel. Returns each signature
/// with the ending of its file name. A signature that is too large to be judged has no bytes.
fn signatures(cx: &Context, proxy: &Repository, file: &FilePath) -> Vec<(&'static str, Vec<u8>)> {
    let limit = Statement::MAX_BYTES as u64;
    let start = |suffix: &'static str| {
        let path = format!("{}{suffix}", file.path);
        let fetch = cx.upstream("GET", &encoded(&path)).fresh(Freshness::Immutable).limit(limit);
        Some((suffix, path, fetch.metadata().start(proxy).ok()?))
    };
    let replies: Vec<_> = SUFFIXES.into_iter().filter_map(start).collect();
    let signatures = replies.into_iter().filter_map(|(suffix, path, reply)| {
        let body = match reply.status() {
            Ok(200) if !is_page(&reply.headers().ok()?, &path) => {
                reply.body().and_then(|body| body.read_all(limit))
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
    signatures.collect()
}

/// Fetches the whole file and verifies it like every other file. The host does not list the file
/// yet, and therefore does not judge it yet.
fn fetch_whole(cx: &Context, proxy: &Repository, file: &FilePath) -> Result<Blob, Failure> {
    let mut reply = unlisted_fetch(cx, "GET", file).metadata().start(proxy)?;
    let headers = success_headers(&reply, &file.path)?;
    let policy = ChecksumPolicy::of(proxy)?;
    if header(&headers, "age").is_none()
        && policy == ChecksumPolicy::Fail
        && let Some(stated) = policy.stated(cx, proxy, file, &headers)?
    {
        reply.expect(&stated);
    }
    let blob = reply.body()?;
    blob.size()?;
    Ok(blob)
}

fn listed_version(item: &VersionFile) -> Version {
    Version::new(item.name(), &item.version)
        .property("group", &item.group)
        .property("artifact", &item.artifact)
}
