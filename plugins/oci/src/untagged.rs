//! Removal of tags and manifests: on request, or if a manifest has no reference left and the
//! repository does not keep untagged manifests.

use crate::records::{self, ManifestRecord, TagRecord};
use crate::{busy, failure, statements};
use packhouse_sdk::{Digest, Expectation, Failure, Repository, Step, Transaction, VersionId};
use std::collections::BTreeSet;

/// Number of tags that one commit removes. Each tag takes three of the 10,000 changes that a commit
/// may have.
const TAGS_PER_COMMIT: u32 = 1_000;
/// Approximate maximum number of records that an undo restores together with a tag.
const MAX_RESTORED: usize = 4_000;

/// Removes each of these manifests that has no reference: no tag, no index, and no existing
/// subject. Then checks the parts and the referrers of the removed manifests in the same way.
///
/// # Errors
/// 503 if every retry of a commit loses the race.
pub(crate) fn remove_unreferenced(
    repository: &Repository,
    image: &str,
    digests: Vec<Digest>,
) -> Result<(), Failure> {
    let mut candidates = digests;
    while let Some(digest) = candidates.pop() {
        candidates.extend(remove_if_unreferenced(repository, image, &digest)?);
    }
    Ok(())
}

/// Removes a manifest without references. Returns the manifests to check next; empty if the
/// manifest stays.
fn remove_if_unreferenced(
    repository: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Vec<Digest>, Failure> {
    repository.update_if_needed(busy, |change| {
        // Every new reference changes the revision of one record. The revision is read before the
        // check, and the commit requires the same revision.
        let expect = no_new_references(repository, image)?;
        let Some(entry) = repository.get_json::<ManifestRecord>(&records::manifest(image, digest))? else {
            return Ok(Step::Done(Vec::new()));
        };
        if is_referenced(repository, image, digest, &entry.value)? {
            return Ok(Step::Done(Vec::new()));
        }
        change.require(&records::touched(image), expect);
        remove(repository, change, image, digest, &entry.value).map(Step::Commit)
    })
}

/// Returns true if a manifest has a tag, is part of an index, or has an existing subject.
pub(crate) fn is_referenced(
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

/// Adds the removal of a manifest to a change. Returns its parts and its referrers.
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

/// Removes a manifest with all its tags, even if it has other references. Returns its parts and its
/// referrers.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 503 if every retry of a commit loses the race.
pub(crate) fn delete(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<Digest>, Failure> {
    loop {
        // If there are more tags than one commit can remove, the last commit removes the manifest.
        let removed = repository.update(busy, |change| delete_page(repository, change, image, digest))?;
        if let Some(next) = removed.value {
            return Ok(next);
        }
    }
}

/// Removes a page of a manifest's tags. The last page also removes the manifest and returns its
/// parts and its referrers.
fn delete_page(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    digest: &Digest,
) -> Result<Option<Vec<Digest>>, Failure> {
    let expect = no_new_references(repository, image)?;
    let entry = repository.get_json::<ManifestRecord>(&records::manifest(image, digest))?;
    let entry = entry.ok_or_else(failure::unknown_manifest)?;
    let prefix = records::tags_of(image, digest);
    let keys = repository.keys(prefix.as_str()).page(TAGS_PER_COMMIT).take(TAGS_PER_COMMIT as usize);
    let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
    change.require(&records::touched(image), expect);
    for tag in keys.iter().filter_map(|key| key.strip_prefix(&prefix)) {
        remove_tag(change, image, digest, tag, Expectation::Anything);
    }
    if keys.len() < TAGS_PER_COMMIT as usize {
        let removal = statements::Removal { digest, record: Some(&entry.value), tag: None };
        statements::retract(repository, change, image, removal)?;
        remove(repository, change, image, digest, &entry.value).map(Some)
    } else {
        Ok(None)
    }
}

/// Removes only a tag. Returns its manifest.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 503 if every retry of the commit loses the race.
pub(crate) fn delete_tag(repository: &Repository, image: &str, tag: &str) -> Result<Digest, Failure> {
    let key = records::tag(image, tag);
    let removed = repository.update(busy, |change| {
        let entry = repository.get_json::<TagRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        let digest = entry.value.digest;
        remove_tag(change, image, &digest, tag, Expectation::Revision(entry.revision));
        let removal = statements::Removal { digest: &digest, record: None, tag: Some(tag) };
        statements::retract(repository, change, image, removal)?;
        Ok(digest)
    })?;
    Ok(removed.value)
}

/// Removes a tag and all manifests that have no other reference, if possible in one commit, so that
/// a user can undo the deletion. The undo also restores other records that the tag needs, if these
/// were removed after the deletion. Returns the manifests to check next.
///
/// # Errors
/// Fails like [`delete_tag`].
pub(crate) fn delete_tag_and_manifests(
    repository: &Repository,
    image: &str,
    tag: &str,
) -> Result<Vec<Digest>, Failure> {
    let key = records::tag(image, tag);
    let removed = repository.update(busy, |change| {
        let expect = no_new_references(repository, image)?;
        let entry = repository.get_json::<TagRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        let digest = entry.value.digest;
        for needed in needed_records(repository, image, &digest)? {
            change.require(&needed, Expectation::Anything);
        }
        change.require(&records::touched(image), expect);
        let left = remove_tree(repository, change, image, &digest, Some(tag))?;
        remove_tag(change, image, &digest, tag, Expectation::Revision(entry.revision));
        Ok(left)
    })?;
    Ok(removed.value)
}

/// Adds the removal of a manifest to a change, if nothing but this tag refers to the manifest. Also
/// adds the removal of parts and referrers that only removed manifests keep. Returns manifests that
/// did not fit into the change and must be checked next.
fn remove_tree(
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
        if is_referenced_by_others(repository, image, &digest, &entry.value, &gone, tag)? {
            continue;
        }
        changes += 2 + entry.value.children.len();
        if changes > MAX_RESTORED {
            next.push(digest);
            return Ok(next);
        }
        next.extend(remove(repository, change, image, &digest, &entry.value)?);
        gone.insert(digest);
    }
    Ok(Vec::new())
}

/// Returns true if a manifest has a reference other than this tag and the manifests in `gone`.
fn is_referenced_by_others(
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

/// The keys of the records of a manifest, its parts and their referrers, as many as one commit can
/// contain.
fn needed_records(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<String>, Failure> {
    let (mut keys, mut next, mut visited) = (Vec::new(), vec![digest.clone()], BTreeSet::new());
    while let Some(digest) = next.pop() {
        if keys.len() > MAX_RESTORED || !visited.insert(digest.clone()) {
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

/// Removes a manifest without references in a way that a user can undo. Returns the manifests to
/// check next.
///
/// # Errors
/// 404 `MANIFEST_UNKNOWN`; 409 if the manifest has a reference; 503 if every retry of the commit
/// loses the race.
pub(crate) fn delete_untagged(
    repository: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Vec<Digest>, Failure> {
    let removed = repository.update(busy, |change| {
        let expect = no_new_references(repository, image)?;
        let key = records::manifest(image, digest);
        let entry = repository.get_json::<ManifestRecord>(&key)?.ok_or_else(failure::unknown_manifest)?;
        if is_referenced(repository, image, digest, &entry.value)? {
            let text = format!("{image}@{digest} is still referenced by a tag, an index or its subject");
            return Err(Failure::new(409, "conflict", text));
        }
        change.require(&records::touched(image), expect);
        for needed in needed_records(repository, image, digest)? {
            change.require(&needed, Expectation::Anything);
        }
        remove_tree(repository, change, image, digest, None)
    })?;
    Ok(removed.value)
}

fn remove_tag(change: &mut Transaction, image: &str, digest: &Digest, tag: &str, expect: Expectation) {
    change.remove(&records::tag(image, tag), expect);
    change.remove(&records::tagged(image, digest, tag), Expectation::Anything);
    change.hide(&VersionId::new(image, tag));
}

/// The condition that no manifest of the image gets a new reference.
fn no_new_references(repository: &Repository, image: &str) -> Result<Expectation, Failure> {
    Ok(Expectation::unchanged(repository.get(&records::touched(image))?.as_ref()))
}
