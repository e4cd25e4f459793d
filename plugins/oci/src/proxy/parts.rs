//! Records of the versions that a manifest or a layer belongs to, for proxies that policies judge.
//!
//! A client first requests a tag, and then requests the parts of the tag's manifest by digest.
//! Policies judge versions, not parts. To decide about a part, the host therefore judges the
//! versions in which the proxy has served the part. Images share layers, so a part may have several
//! versions. The part passes if one of them passes, whatever other clients pull meanwhile. If no
//! policy judges the proxy, nothing is recorded.

use super::{ManifestRequest, statements};
use crate::records;
use packhouse_sdk::{Digest, Expectation, Failure, Fetch, Outcome, Repository, Transaction};
use serde::{Deserialize, Serialize};
use std::iter::once;

/// Maximum number of versions that are recorded for one part.
const MAX_OWNERS: usize = 8;
/// Maximum number of recorded parts of one manifest. A change has at most 16 MiB, and a part with
/// its owners takes up to 2,200 bytes.
pub(super) const MAX_PARTS: usize = 7_000;
/// Maximum number of attempts to commit a record.
const MAX_ATTEMPTS: usize = 5;

/// A version that a manifest or a layer belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct OwningVersion {
    /// A tag, or the digest of a manifest for which no tag is known.
    pub(super) version: String,
    /// The manifest that the tag named when the proxy served it. For a digest, the manifest itself.
    pub(super) root: Digest,
}

/// The record of the versions that a manifest or a layer belongs to.
#[derive(Deserialize, Serialize)]
struct OwnersRecord {
    /// The version that was recorded last.
    owner: OwningVersion,
    /// The versions that were recorded before `owner`, the latest first. Missing in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<OwningVersion>,
    /// Always false. Older versions of the server cannot read a record without this field.
    has_parts: bool,
}

/// The members of a manifest that name other digests.
#[derive(Deserialize)]
struct NamedParts {
    config: Option<PartDescriptor>,
    layers: Option<Vec<PartDescriptor>>,
    manifests: Option<Vec<PartDescriptor>>,
}

#[derive(Deserialize)]
struct PartDescriptor {
    digest: String,
}

impl OwningVersion {
    /// The version for a manifest that the host judges by its own statements. Its name is the
    /// digest.
    pub(super) fn itself(digest: &Digest) -> Self {
        Self { version: digest.to_string(), root: digest.clone() }
    }

    pub(super) fn of_tag(tag: &str, digest: &Digest) -> Self {
        Self { version: tag.to_owned(), root: digest.clone() }
    }
}

/// Makes the host judge these versions to decide about a fetch.
pub(super) fn judged(fetch: Fetch, image: &str, owners: &[OwningVersion]) -> Fetch {
    let versions = owners.iter().map(|owner| &owner.version);
    versions.fold(fetch, |fetch, version| fetch.part_of(image, version, &super::listed_path(image, version)))
}

impl OwnersRecord {
    fn owners(&self) -> impl Iterator<Item = &OwningVersion> {
        once(&self.owner).chain(&self.others)
    }
}

/// Returns the first [`MAX_OWNERS`] owners, each version once.
fn distinct<'a>(owners: impl Iterator<Item = &'a OwningVersion>) -> Vec<OwningVersion> {
    let mut distinct: Vec<OwningVersion> = Vec::new();
    for owner in owners {
        if distinct.iter().all(|known| known.version != owner.version) {
            distinct.push(owner.clone());
        }
    }
    distinct.truncate(MAX_OWNERS);
    distinct
}

/// The versions in which a digest was served, the latest first.
pub(super) fn recorded(
    proxy: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Vec<OwningVersion>, Failure> {
    let entry = proxy.get_json::<OwnersRecord>(&records::owners(image, digest))?;
    Ok(entry.iter().flat_map(|entry| entry.value.owners().cloned()).collect())
}

/// Returns the versions that the host judges to decide about a manifest. If no tag of the manifest
/// is known and a policy uses signatures, the host judges the manifest by its own signatures. If no
/// tag is known and no policy uses signatures, the list is empty, and the host judges only the
/// image.
pub(super) fn owners(request: &ManifestRequest, digest: &Digest) -> Result<Vec<OwningVersion>, Failure> {
    let mut owners = recorded(request.proxy, request.image, digest)?;
    if !request.judged_by_provenance {
        return Ok(owners);
    }
    for owner in &mut owners {
        if !statements::is_current(request, owner)? {
            *owner = OwningVersion::itself(&owner.root);
        }
    }
    if owners.is_empty() {
        owners.push(OwningVersion::itself(digest));
    }
    let owners = distinct(owners.iter());
    for owner in owners.iter().filter(|owner| owner.version == owner.root.as_str()) {
        statements::update(request, &owner.version, &owner.root)?;
    }
    Ok(owners)
}

/// Records that the proxy serves a manifest and its parts in these versions.
pub(super) fn record(
    proxy: &Repository,
    image: &str,
    manifest: &Digest,
    bytes: &[u8],
    owners: &[OwningVersion],
) -> Result<(), Failure> {
    let Ok(NamedParts { config, layers, manifests }) = serde_json::from_slice::<NamedParts>(bytes) else {
        return Ok(());
    };
    let all = config.into_iter().chain(layers.into_iter().flatten()).chain(manifests.into_iter().flatten());
    let parts = all.filter_map(|part| crate::name::digest(&part.digest).ok()).take(MAX_PARTS);
    let parts: Vec<Digest> = once(manifest.clone()).chain(parts).collect();
    record_parts(proxy, image, &parts, owners)
}

/// Records that the proxy serves these parts in these versions. Gives up without an error if every
/// attempt loses the race: the next read of the manifest records the parts.
pub(super) fn record_parts(
    proxy: &Repository,
    image: &str,
    parts: &[Digest],
    owners: &[OwningVersion],
) -> Result<(), Failure> {
    for _ in 0..MAX_ATTEMPTS {
        let mut change = proxy.begin()?;
        let is_new = add(proxy, &mut change, image, parts, owners)?;
        if !is_new || matches!(change.commit()?, Outcome::Applied(_)) {
            break;
        }
    }
    Ok(())
}

/// Adds the owners of these parts to a change. Returns false if all of them are recorded already.
pub(super) fn add(
    proxy: &Repository,
    change: &mut Transaction,
    image: &str,
    parts: &[Digest],
    owners: &[OwningVersion],
) -> Result<bool, Failure> {
    let mut is_new = false;
    for part in parts {
        let key = records::owners(image, part);
        let before = proxy.get_json::<OwnersRecord>(&key)?;
        let known: Vec<&OwningVersion> = before.iter().flat_map(|entry| entry.value.owners()).collect();
        if owners.iter().all(|owner| known.contains(&owner)) {
            continue;
        }
        let mut latest = distinct(owners.iter().chain(known)).into_iter();
        if let Some(owner) = latest.next() {
            let record = OwnersRecord { owner, others: latest.collect(), has_parts: false };
            // If a concurrent request adds owners, this commit becomes stale and does not overwrite
            // them.
            change.put_json(&key, &record, Expectation::unchanged(before.as_ref()), &[])?;
            is_new = true;
        }
    }
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::OwnersRecord;

    #[test]
    fn a_record_of_one_version_keeps_its_old_form() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let text = format!(r#"{{"owner":{{"version":"1.0","root":"{digest}"}},"has_parts":false}}"#);
        let record: OwnersRecord = serde_json::from_str(&text).unwrap();
        let versions: Vec<&str> = record.owners().map(|owner| owner.version.as_str()).collect();
        assert_eq!(versions, ["1.0"]);
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
    }
}
