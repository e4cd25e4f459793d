//! The versions that a manifest or a layer belongs to, where policies judge a proxy.
//!
//! A client asks for a tag, and then by digest for what the tag's manifest names. A policy judges versions, and so each part is judged as the
//! versions through which it was offered. Images share layers: one version that passes is enough, whatever other clients pull meanwhile.
//! Nothing is noted where no policy judges the proxy.

use super::{ManifestRequest, statements};
use crate::records;
use packhouse_sdk::{Digest, Expectation, Failure, Fetch, Outcome, Repository, Transaction};
use serde::{Deserialize, Serialize};
use std::iter::once;

/// Versions that are noted of one part.
const MOST_OWNERS: usize = 8;
/// Parts of one manifest that are noted: a change holds 16 MiB, and a part with its owners takes up to 2,200 bytes.
pub(super) const MOST_PARTS: usize = 7_000;
/// How often it is tried to note them.
const TRIES: usize = 5;

/// A version that something belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Owner {
    /// A tag, or the digest of a manifest that no tag was seen to name.
    pub(super) version: String,
    /// The manifest that was judged as this version.
    pub(super) root: Digest,
}

/// What is noted of a digest.
#[derive(Deserialize, Serialize)]
struct Noted {
    /// The version that was noted last.
    owner: Owner,
    /// The versions that were noted before it, the latest first. Older records have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<Owner>,
    /// False. Older programs do not read a record without it.
    has_parts: bool,
}

/// The digests that a manifest names, whatever else is in it.
#[derive(Deserialize)]
struct Named {
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
}

impl Owner {
    /// A manifest that is judged as a version of its own.
    pub(super) fn itself(digest: &Digest) -> Self {
        Self { version: digest.to_string(), root: digest.clone() }
    }

    pub(super) fn of_tag(tag: &str, digest: &Digest) -> Self {
        Self { version: tag.to_owned(), root: digest.clone() }
    }
}

/// The fetch, judged as these versions.
pub(super) fn judged(fetch: Fetch, image: &str, owners: &[Owner]) -> Fetch {
    let versions = owners.iter().map(|owner| &owner.version);
    versions.fold(fetch, |fetch, version| fetch.part_of(image, version, &super::shown_path(image, version)))
}

impl Noted {
    fn owners(&self) -> impl Iterator<Item = &Owner> {
        once(&self.owner).chain(&self.others)
    }
}

/// The first of these, each version once.
fn distinct<'a>(owners: impl Iterator<Item = &'a Owner>) -> Vec<Owner> {
    let mut distinct: Vec<Owner> = Vec::new();
    for owner in owners {
        if distinct.iter().all(|known| known.version != owner.version) {
            distinct.push(owner.clone());
        }
    }
    distinct.truncate(MOST_OWNERS);
    distinct
}

/// The versions through which this was offered, the latest first.
pub(super) fn noted(proxy: &Repository, image: &str, digest: &Digest) -> Result<Vec<Owner>, Failure> {
    let entry = proxy.get_json::<Noted>(&records::owner(image, digest))?;
    Ok(entry.iter().flat_map(|entry| entry.value.owners().cloned()).collect())
}

/// The versions that a manifest is judged as. What no tag was seen to name is judged by its own signatures where a policy goes by those, and
/// else by its image alone: then there are none.
pub(super) fn owners(asked: &ManifestRequest, digest: &Digest) -> Result<Vec<Owner>, Failure> {
    let mut owners = noted(asked.proxy, asked.image, digest)?;
    if !asked.judged_by_provenance {
        return Ok(owners);
    }
    for owner in &mut owners {
        if !statements::still_stands(asked, owner)? {
            *owner = Owner::itself(&owner.root);
        }
    }
    if owners.is_empty() {
        owners.push(Owner::itself(digest));
    }
    let owners = distinct(owners.iter());
    for owner in owners.iter().filter(|owner| owner.version == owner.root.as_str()) {
        statements::state(asked, &owner.version, &owner.root)?;
    }
    Ok(owners)
}

/// Notes that a manifest and its parts are offered as these versions.
pub(super) fn note(
    proxy: &Repository,
    image: &str,
    manifest: &Digest,
    bytes: &[u8],
    owners: &[Owner],
) -> Result<(), Failure> {
    let Ok(Named { config, layers, manifests }) = serde_json::from_slice::<Named>(bytes) else {
        return Ok(());
    };
    let all = config.into_iter().chain(layers.into_iter().flatten()).chain(manifests.into_iter().flatten());
    let parts = all.filter_map(|part| crate::name::digest(&part.digest).ok()).take(MOST_PARTS);
    let parts: Vec<Digest> = once(manifest.clone()).chain(parts).collect();
    note_parts(proxy, image, &parts, owners)
}

/// Notes that these parts are offered as these versions. Where others are faster each time it is given up: whoever reads the manifest is
/// answered, and the next read notes them.
pub(super) fn note_parts(
    proxy: &Repository,
    image: &str,
    parts: &[Digest],
    owners: &[Owner],
) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let mut change = proxy.begin()?;
        let is_new = add(proxy, &mut change, image, parts, owners)?;
        if !is_new || matches!(change.commit()?, Outcome::Applied(_)) {
            break;
        }
    }
    Ok(())
}

/// Adds the owners of these parts to a change; false where all of them are noted.
pub(super) fn add(
    proxy: &Repository,
    change: &mut Transaction,
    image: &str,
    parts: &[Digest],
    owners: &[Owner],
) -> Result<bool, Failure> {
    let mut is_new = false;
    for part in parts {
        let key = records::owner(image, part);
        let before = proxy.get_json::<Noted>(&key)?;
        let known: Vec<&Owner> = before.iter().flat_map(|entry| entry.value.owners()).collect();
        if owners.iter().all(|owner| known.contains(&owner)) {
            continue;
        }
        let mut latest = distinct(owners.iter().chain(known)).into_iter();
        if let Some(owner) = latest.next() {
            let noted = Noted { owner, others: latest.collect(), has_parts: false };
            // Nothing of what another request notes at the same time may be lost.
            change.put_json(&key, &noted, Expectation::unchanged(before.as_ref()), &[])?;
            is_new = true;
        }
    }
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::Noted;

    #[test]
    fn a_record_of_one_version_is_read_and_written_as_before() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let text = format!(r#"{{"owner":{{"version":"1.0","root":"{digest}"}},"has_parts":false}}"#);
        let noted: Noted = serde_json::from_str(&text).unwrap();
        let versions: Vec<&str> = noted.owners().map(|owner| owner.version.as_str()).collect();
        assert_eq!(versions, ["1.0"]);
        assert_eq!(serde_json::to_string(&noted).unwrap(), text);
    }
}
