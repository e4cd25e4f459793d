//! Signed statements that an upstream has about the manifest of a tag. The statements are in
//! referrers of the manifest and under cosign's tags. A carrier is a manifest that contains
//! statements about another manifest.
//!
//! The plugin fetches the statements only if a policy judges by them. Images are signed after they
//! are pushed, so the plugin looks for new carriers on each request. It looks in lists of the
//! upstream that are cached for a limited time. A record of the tag lists the carriers that were
//! read, so that a request without new statements changes nothing.

use super::parts::OwningVersion;
use super::{FOREVER, ManifestRequest, header, is_there, lists, media_type, parts, unreachable};
use crate::statements::{SignedStatement, signed_statements, tags_about};
use crate::{MANIFEST_LIMIT, busy, manifest, records};
use packhouse_sdk::{
    Digest, Error, Expectation, Failure, Freshness, ReadAt, Statement, Step, Transaction, Version, VersionId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum number of carriers that are read for one manifest.
const MAX_CARRIERS: usize = 32;

/// The record of the statements that the plugin has handed to the host for a tag.
#[derive(Deserialize, Serialize)]
struct TagStatements {
    /// The manifest that the tag named.
    digest: Digest,
    /// The carriers that were read, with or without statements.
    carriers: BTreeSet<Digest>,
}

/// A carrier and its signed statements.
type Carrier = (Digest, Vec<SignedStatement>);

/// Hands the host the signed statements about this manifest that are new for its tag. Removes the
/// statements about another manifest that the tag named before. If the upstream does not respond,
/// the known statements stay.
///
/// # Errors
/// 503 if every retry of the commit loses the race.
pub(super) fn update(request: &ManifestRequest, tag: &str, digest: &Digest) -> Result<(), Failure> {
    let key = records::tag_statements(request.image, tag);
    let (mut available, mut read) = (None, Vec::new());
    request.proxy.update_if_needed(busy, |change| {
        let before = request.proxy.get_json::<TagStatements>(&key)?;
        let known = before.as_ref().map(|entry| &entry.value).filter(|stated| stated.digest == *digest);
        let moved = before.is_some() && known.is_none();
        let carriers = known.map(|stated| stated.carriers.clone()).unwrap_or_default();
        let new = available.get_or_insert_with(|| carriers_of(request, digest)).difference(&carriers);
        for carrier in new {
            let is_read = read.iter().any(|(known, _): &Carrier| known == carrier);
            if !is_read && let Some(signed) = signed_in(request, carrier) {
                read.push((carrier.clone(), signed));
            }
        }
        let new: Vec<&Carrier> = read.iter().filter(|(carrier, _)| !carriers.contains(carrier)).collect();
        if new.is_empty() && !moved {
            return Ok(Step::Done(()));
        }
        add(change, request.image, tag, digest, moved, &new);
        if request.is_judged {
            // A carrier belongs to the same versions as the manifest that it is about.
            let carriers: Vec<Digest> = new.iter().map(|(carrier, _)| carrier.clone()).collect();
            let owner = OwningVersion { version: tag.to_owned(), root: digest.clone() };
            parts::add(request.proxy, change, request.image, &carriers, &[owner])?;
        }
        let carriers = carriers.into_iter().chain(new.into_iter().map(|(carrier, _)| carrier.clone()));
        let stated = TagStatements { digest: digest.clone(), carriers: carriers.collect() };
        change.put_json(&key, &stated, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(Step::Commit(()))
    })
}

/// Returns true if the recorded statements of a version are about the manifest `root` of `owner`.
/// Also returns true if no statements are recorded.
pub(super) fn is_current(request: &ManifestRequest, owner: &OwningVersion) -> Result<bool, Failure> {
    let stated =
        request.proxy.get_json::<TagStatements>(&records::tag_statements(request.image, &owner.version))?;
    Ok(stated.is_none_or(|entry| entry.value.digest == owner.root))
}

fn add(change: &mut Transaction, image: &str, tag: &str, digest: &Digest, moved: bool, new: &[&Carrier]) {
    let id = VersionId::new(image, tag);
    if moved {
        change.hide(&id);
    }
    if new.iter().any(|(_, signed)| !signed.is_empty()) {
        change.show(&Version::new(image, tag).property("digest", digest.as_str()));
    }
    for (carrier, signed) in new {
        for SignedStatement { kind, bytes } in signed {
            let statement = Statement::new(id.clone(), kind, digest.clone(), bytes.clone());
            let file = format!("{image}/manifests/{tag}");
            change.attest(&statement.of_file(file).at(format!("{image}/manifests/{carrier}")));
        }
    }
}

/// The carriers of statements about a manifest. Empty if the upstream does not respond.
fn carriers_of(request: &ManifestRequest, digest: &Digest) -> BTreeSet<Digest> {
    let listed = lists::referrers(request.cx, request.proxy, request.image, digest).unwrap_or_default();
    let tagged = tags_about(digest).filter_map(|tag| named(request, &tag).ok().flatten());
    listed.into_iter().map(|one| one.digest).chain(tagged).take(MAX_CARRIERS).collect()
}

/// The digest of the manifest that a tag names. `None` if the tag does not exist.
pub(super) fn named(request: &ManifestRequest, tag: &str) -> Result<Option<Digest>, Failure> {
    match request.newest(tag, None)? {
        Some(head) => head.digest.map_or_else(|| digest_of_body(request, tag), |digest| Ok(Some(digest))),
        None => Ok(None),
    }
}

/// Fetches the manifest of a tag to compute its digest, for an upstream that does not state
/// digests.
pub(super) fn digest_of_body(request: &ManifestRequest, tag: &str) -> Result<Option<Digest>, Failure> {
    let reply = request
        .fetch("GET", tag)
        .limit(MANIFEST_LIMIT)
        .metadata()
        .start(request.proxy)
        .map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    media_type(&reply)?;
    Ok(Some(reply.body().map_err(unreachable)?.sha256().map_err(unreachable)?))
}

/// The signed statements in a carrier. `None` if it cannot be fetched now.
fn signed_in(request: &ManifestRequest, carrier: &Digest) -> Option<Vec<SignedStatement>> {
    let fetch = request
        .fetch("GET", carrier.as_str())
        .fresh(FOREVER)
        .expect(carrier)
        .limit(MANIFEST_LIMIT)
        .metadata();
    let reply = fetch.start(request.proxy).ok()?;
    if !is_there(&reply).ok()? {
        return None;
    }
    let (kind, is_cached) = (media_type(&reply).ok()?, header(&reply, "age").ok()?.is_some());
    let bytes = reply.body().ok()?.read_all(MANIFEST_LIMIT).ok()?;
    if !is_cached && !manifest::is_manifest(&bytes, &kind) {
        return None;
    }
    signed_statements(&bytes, |layer| signature(request, layer)).ok()
}

/// The bytes of a layer. `None` if the layer does not exist; empty if it is too large for the host
/// to verify.
fn signature(request: &ManifestRequest, layer: &Digest) -> Result<Option<Vec<u8>>, Failure> {
    let most = Statement::MAX_BYTES as u64;
    let fetch = request.cx.upstream("GET", &request.upstream.path(&format!("blobs/{layer}")));
    let reply =
        fetch.fresh(Freshness::Immutable).limit(most).expect(layer).metadata().start(request.proxy)?;
    let bytes = match reply.status() {
        Ok(200) => reply.body().and_then(|body| body.read_all(most)),
        Ok(404 | 410) => return Ok(None),
        Ok(status) => return Err(super::unusable(&format!("it answered with status {status}"))),
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Error::UpstreamTooLarge { .. }) => Ok(Some(Vec::new())),
        Err(error) => Err(unreachable(error)),
    }
}
