//! Removing tags and manifests: asked for, or because nothing points to a manifest any more where untagged ones are not kept.

use crate::records::{self, ManifestRecord, TagRecord};
use crate::{busy, failure, statements};
use packhouse_sdk::{Digest, Expectation, Failure, Repository, Step, Transaction, VersionId};
use std::collections::BTreeSet;

/// Tags that go in one commit: each is three changes of the 10,000 that one may have.
const PAGE: u32 = 1_000;
/// Records that a tag brings back with it, about.
const NEEDED: usize = 4_000;

/// Removes those of these manifests that nothing points to: no tag, no index, and, for one that says something about another,
/// not that other. What a removed one pointed to is looked at in turn.
///
/// # Errors
/// 503 when others change the image each time.
pub(crate) fn drop_all(repository: &Repository, image: &str, digests: Vec<Digest>) -> Result<(), Failure> {
    let mut suspects = digests;
    while let Some(digest) = suspects.pop() {
        suspects.extend(drop_one(repository, image, &digest)?);
    }
    Ok(())
}

/// Removes a manifest that nothing points to. What it pointed to; nothing where it stays.
fn drop_one(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<Digest>, Failure> {
    repository.update_if_needed(busy, |change| {
        // Whoever begins to point to it puts this record: read before looking, required when removing.
        let expect = touched(repository, image)?;
        let Some(entry) = repository.get_json::<ManifestRecord>(&records::manifest(image, digest))? else {
            return Ok(Step::Done(Vec::new()));
        };
        if is_pointed_to(repository, image, digest, &entry.value)? {
            return Ok(Step::Done(Vec::new()));
        }
        change.require(&records::touched(image), expect);
        remove(repository, change, image, digest, &entry.value).map(Step::Commit)
    })
}

/// Whether a tag, an index, or what it says something about points to a manifest.
pub(crate) fn is_pointed_to(
    repository: &Repository,
    image: &str,
    digest: &Digest,
    record: &ManifestRecord,
) -> Result<bool, Failure> {
    for prefix in [records::tags_of(image, digest), records::indexes(image, digest)] {
        if repository.keys(prefix).page(1).next().transpose()?.is_some() {
            return Ok(true);
        }
    }
    match &record.subject {
        Some(subject) => Ok(repository.get(&records::manifest(image, subject))?.is_some()),
        None => Ok(false),
    }
}

/// Adds a manifest's removal to a change; what it pointed to, and what said something about it.
fn remove(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    digest: &Digest,
    record: &ManifestRecord,
) -> Result<Vec<Digest>, Failure> {
    change.remove(&records::manifest(image, digest), Expectation::Present);
    if let Some(subject) = &record.subject {
        change.remove(&records::referrer(image, subject, digest), Expectation::Anything);
    }
    for child in &record.children {
        change.remove(&records::part(image, child, digest), Expectation::Anything);
    }
    let mut next = record.children.clone();
    let prefix = records::referrers(image, digest);
    for key in repository.keys(prefix.as_str()) {
        next.extend(key?.strip_prefix(&prefix).and_then(|digest| digest.parse().ok()));
    }
    Ok(next)
}

/// Removes a manifest with all its tags, whoever points to it; what it pointed to, and what said something about it.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 503 when others change the image each time.
pub(crate) fn delete(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<Digest>, Failure> {
    loop {
        // With more tags than one commit takes, the manifest goes with the last of them.
        let removed = repository.update(busy, |change| delete_page(repository, change, image, digest))?;
        if let Some(next) = removed.value {
            return Ok(next);
        }
    }
}

/// Removes a page of a manifest's tags, and with the last of them the manifest: then what it pointed to.
fn delete_page(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    digest: &Digest,
) -> Result<Option<Vec<Digest>>, Failure> {
    let expect = touched(repository, image)?;
    let entry = repository.get_json::<ManifestRecord>(&records::manifest(image, digest))?;
    let entry = entry.ok_or_else(failure::unknown_manifest)?;
    let prefix = records::tags_of(image, digest);
    let keys = repository.keys(prefix.as_str()).page(PAGE).take(PAGE as usize);
    let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
    change.require(&records::touched(image), expect);
    for tag in keys.iter().filter_map(|key| key.strip_prefix(&prefix)) {
        remove_tag(change, image, digest, tag, Expectation::Anything);
    }
    if keys.len() < PAGE as usize {
        let gone = statements::Gone { digest, record: Some(&entry.value), tag: None };
        statements::retract(repository, change, image, gone)?;
        remove(repository, change, image, digest, &entry.value).map(Some)
    } else {
        Ok(None)
    }
}

/// Removes a tag alone; the manifest that it was of.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 503 when others change the tag each time.
pub(crate) fn delete_tag(repository: &Repository, image: &str, tag: &str) -> Result<Digest, Failure> {
    let key = records::tag(image, tag);
    let removed = repository.update(busy, |change| {
        let entry = repository.get_json::<TagRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        let digest = entry.value.digest;
        remove_tag(change, image, &digest, tag, Expectation::Revision(entry.revision));
        let gone = statements::Gone { digest: &digest, record: None, tag: Some(tag) };
        statements::retract(repository, change, image, gone)?;
        Ok(digest)
    })?;
    Ok(removed.value)
}

/// Removes a tag with all that nothing else points to, in one commit where that takes it, so that it can be undone: what the tag needs
/// comes back with it, should it be gone by then. What is left to be looked at.
///
/// # Errors
/// As [`delete_tag`].
pub(crate) fn delete_tag_wholly(
    repository: &Repository,
    image: &str,
    tag: &str,
) -> Result<Vec<Digest>, Failure> {
    let key = records::tag(image, tag);
    let removed = repository.update(busy, |change| {
        let expect = touched(repository, image)?;
        let entry = repository.get_json::<TagRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        let digest = entry.value.digest;
        for needed in needed(repository, image, &digest)? {
            change.require(&needed, Expectation::Anything);
        }
        change.require(&records::touched(image), expect);
        let left = remove_whole(repository, change, image, &digest, Some(tag))?;
        remove_tag(change, image, &digest, tag, Expectation::Revision(entry.revision));
        Ok(left)
    })?;
    Ok(removed.value)
}

/// Adds to a change the removal of a manifest that nothing but this tag points to, of what it pointed to alone, and of what says
/// something about any of these. What did not go with it and is to be looked at.
fn remove_whole(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    digest: &Digest,
    tag: Option<&str>,
) -> Result<Vec<Digest>, Failure> {
    let (mut gone, mut next, mut changes) = (BTreeSet::new(), vec![digest.clone()], 0);
    while let Some(digest) = next.pop() {
        if gone.contains(&digest) {
            continue;
        }
        let Some(entry) = repository.get_json::<ManifestRecord>(&records::manifest(image, &digest))? else {
            continue;
        };
        if is_pointed_to_by_others(repository, image, &digest, &entry.value, &gone, tag)? {
            continue;
        }
        changes += 2 + entry.value.children.len();
        if changes > NEEDED {
            next.push(digest);
            return Ok(next);
        }
        next.extend(remove(repository, change, image, &digest, &entry.value)?);
        gone.insert(digest);
    }
    Ok(Vec::new())
}

/// Whether anything points to a manifest but what goes with it, and this tag.
fn is_pointed_to_by_others(
    repository: &Repository,
    image: &str,
    digest: &Digest,
    record: &ManifestRecord,
    gone: &BTreeSet<Digest>,
    tag: Option<&str>,
) -> Result<bool, Failure> {
    let prefix = records::tags_of(image, digest);
    for key in repository.keys(prefix.as_str()).page(2) {
        if key?.strip_prefix(&prefix) != tag {
            return Ok(true);
        }
    }
    let prefix = records::indexes(image, digest);
    for key in repository.keys(prefix.as_str()) {
        let index = key?.strip_prefix(&prefix).and_then(|index| index.parse::<Digest>().ok());
        if index.is_none_or(|index| !gone.contains(&index)) {
            return Ok(true);
        }
    }
    match &record.subject {
        Some(subject) if !gone.contains(subject) => {
            Ok(repository.get(&records::manifest(image, subject))?.is_some())
        }
        _ => Ok(false),
    }
}

/// The records of a manifest, of its parts, and of what says something about them, as far as one commit takes them.
fn needed(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<String>, Failure> {
    let (mut keys, mut next, mut seen) = (Vec::new(), vec![digest.clone()], BTreeSet::new());
    while let Some(digest) = next.pop() {
        if keys.len() > NEEDED || !seen.insert(digest.clone()) {
            continue;
        }
        let key = records::manifest(image, &digest);
        let Some(entry) = repository.get_json::<ManifestRecord>(&key)? else { continue };
        keys.push(key);
        for child in entry.value.children {
            keys.push(records::part(image, &child, &digest));
            next.push(child);
        }
        let prefix = records::referrers(image, &digest);
        for key in repository.keys(prefix.as_str()) {
            let key = key?;
            next.extend(key.strip_prefix(&prefix).and_then(|digest| digest.parse().ok()));
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Removes a manifest that nothing points to, so that it can be undone; what it pointed to, and what said something about it.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 409 where something points to it; 503 when others change the image each time.
pub(crate) fn delete_untagged(
    repository: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Vec<Digest>, Failure> {
    let removed = repository.update(busy, |change| {
        let expect = touched(repository, image)?;
        let key = records::manifest(image, digest);
        let entry = repository.get_json::<ManifestRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        if is_pointed_to(repository, image, digest, &entry.value)? {
            let text =
                format!("{image}@{digest} is named by a tag, an index or what it says something about");
            return Err(Failure::new(409, "conflict", text));
        }
        change.require(&records::touched(image), expect);
        for needed in needed(repository, image, digest)? {
            change.require(&needed, Expectation::Anything);
        }
        remove_whole(repository, change, image, digest, None)
    })?;
    Ok(removed.value)
}

fn remove_tag(change: &mut Transaction, image: &str, digest: &Digest, tag: &str, expect: Expectation) {
    change.remove(&records::tag(image, tag), expect);
    change.remove(&records::tagged(image, digest, tag), Expectation::Anything);
    change.hide(&VersionId::new(image, tag));
}

/// That nothing of the image has begun to be pointed to since.
fn touched(repository: &Repository, image: &str) -> Result<Expectation, Failure> {
    Ok(Expectation::unchanged(repository.get(&records::touched(image))?.as_ref()))
}
