//! What is signed upstream of the manifest that a tag names there, as the host judges it: in manifests that refer to it, and under cosign's tags.
//!
//! It is looked for where a policy judges by it, as fresh as the upstream's lists are kept: who signs an image does so after it is pushed. What
//! was stated is noted with the tag, so that a request that finds nothing new changes nothing.

use super::parts::Owner;
use super::{FOR_GOOD, ManifestRequest, header, is_there, lists, media_type, parts, unreachable};
use crate::statements::{Signed, signed, tags_about};
use crate::{MANIFEST_LIMIT, busy, manifest, records};
use packhouse_sdk::{
    Digest, Error, Expectation, Failure, Freshness, ReadAt, Statement, Step, Transaction, Version, VersionId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Manifests that are looked into for what they say about one other.
const MOST: usize = 32;

/// What was stated of a tag.
#[derive(Deserialize, Serialize)]
struct Stated {
    /// Of which manifest.
    digest: Digest,
    /// The manifests in which it lies, and those in which nothing does.
    carriers: BTreeSet<Digest>,
}

/// A manifest, and what is signed in it.
type Carrier = (Digest, Vec<Signed>);

/// States what the upstream has that is signed of this manifest and was not stated yet for its tag. What was stated of another manifest that
/// the tag named before goes. Where the upstream does not answer, what is known stands.
///
/// # Errors
/// 503 where others are faster each time.
pub(super) fn state(asked: &ManifestRequest, tag: &str, digest: &Digest) -> Result<(), Failure> {
    let key = records::stated(asked.image, tag);
    let (mut about, mut read) = (None, Vec::new());
    asked.proxy.update_if_needed(busy, |change| {
        let before = asked.proxy.get_json::<Stated>(&key)?;
        let known = before.as_ref().map(|entry| &entry.value).filter(|stated| stated.digest == *digest);
        let moved = before.is_some() && known.is_none();
        let carriers = known.map(|stated| stated.carriers.clone()).unwrap_or_default();
        let new = about.get_or_insert_with(|| carriers_of(asked, digest)).difference(&carriers);
        for carrier in new {
            let is_read = read.iter().any(|(known, _): &Carrier| known == carrier);
            if !is_read && let Some(signed) = signed_in(asked, carrier) {
                read.push((carrier.clone(), signed));
            }
        }
        let new: Vec<&Carrier> = read.iter().filter(|(carrier, _)| !carriers.contains(carrier)).collect();
        if new.is_empty() && !moved {
            return Ok(Step::Done(()));
        }
        add(change, asked.image, tag, digest, moved, &new);
        if asked.is_judged {
            // What carries a signature comes where what it is about does.
            let carriers: Vec<Digest> = new.iter().map(|(carrier, _)| carrier.clone()).collect();
            let owner = Owner { version: tag.to_owned(), root: digest.clone() };
            parts::add(asked.proxy, change, asked.image, &carriers, &[owner])?;
        }
        let carriers = carriers.into_iter().chain(new.into_iter().map(|(carrier, _)| carrier.clone()));
        let stated = Stated { digest: digest.clone(), carriers: carriers.collect() };
        change.put_json(&key, &stated, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(Step::Commit(()))
    })
}

/// Whether what was stated of a version is about the manifest that was judged as it.
pub(super) fn still_stands(asked: &ManifestRequest, owner: &Owner) -> Result<bool, Failure> {
    let stated = asked.proxy.get_json::<Stated>(&records::stated(asked.image, &owner.version))?;
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
        for Signed { kind, bytes } in signed {
            let statement = Statement::new(id.clone(), kind, digest.clone(), bytes.clone());
            let file = format!("{image}/manifests/{tag}");
            change.attest(&statement.of_file(file).at(format!("{image}/manifests/{carrier}")));
        }
    }
}

/// The manifests that say something about this one, as far as the upstream says.
fn carriers_of(asked: &ManifestRequest, digest: &Digest) -> BTreeSet<Digest> {
    let listed = lists::referrers(asked.cx, asked.proxy, asked.image, digest).unwrap_or_default();
    let tagged = tags_about(digest).filter_map(|tag| named(asked, &tag).ok().flatten());
    listed.into_iter().map(|one| one.digest).chain(tagged).take(MOST).collect()
}

/// The manifest that a tag names; none where there is none.
pub(super) fn named(asked: &ManifestRequest, tag: &str) -> Result<Option<Digest>, Failure> {
    match asked.newest(tag, None)? {
        Some(head) => head.told.map_or_else(|| named_untold(asked, tag), |told| Ok(Some(told))),
        None => Ok(None),
    }
}

/// The same of an upstream that does not tell digests.
pub(super) fn named_untold(asked: &ManifestRequest, tag: &str) -> Result<Option<Digest>, Failure> {
    let reply =
        asked.fetch("GET", tag).limit(MANIFEST_LIMIT).metadata().start(asked.proxy).map_err(unreachable)?;
    if !is_there(&reply)? {
        return Ok(None);
    }
    media_type(&reply)?;
    Ok(Some(reply.body().map_err(unreachable)?.sha256().map_err(unreachable)?))
}

/// What is signed in a manifest; none where it cannot be had now.
fn signed_in(asked: &ManifestRequest, carrier: &Digest) -> Option<Vec<Signed>> {
    let fetch =
        asked.fetch("GET", carrier.as_str()).fresh(FOR_GOOD).expect(carrier).limit(MANIFEST_LIMIT).metadata();
    let reply = fetch.start(asked.proxy).ok()?;
    if !is_there(&reply).ok()? {
        return None;
    }
    let (kind, kept) = (media_type(&reply).ok()?, header(&reply, "age").ok()?.is_some());
    let bytes = reply.body().ok()?.read_all(MANIFEST_LIMIT).ok()?;
    if !kept && !manifest::is_one(&bytes, &kind) {
        return None;
    }
    signed(&bytes, |layer| signature(asked, layer)).ok()
}

/// A layer; no bytes of one that is too large to be judged.
fn signature(asked: &ManifestRequest, layer: &Digest) -> Result<Option<Vec<u8>>, Failure> {
    let most = Statement::MAX_BYTES as u64;
    let fetch = asked.cx.upstream("GET", &asked.upstream.path(&format!("blobs/{layer}")));
    let reply = fetch.fresh(Freshness::Immutable).limit(most).expect(layer).metadata().start(asked.proxy)?;
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
