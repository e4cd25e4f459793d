//! The version that a manifest or a layer belongs to, where policies judge a proxy.
//!
//! A client asks for a tag, and then by digest for what the tag's manifest names. A policy judges versions, and so each part is judged as the
//! version through which it was offered. Nothing is noted where no policy judges the proxy.

use super::{ManifestRequest, statements};
use crate::records;
use packhouse_sdk::{Digest, Expectation, Failure, Fetch, Repository, Transaction};
use serde::{Deserialize, Serialize};

/// Parts of one manifest that are noted: a change holds 10,000.
const MOST_PARTS: usize = 9_000;

/// The version that something belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Owner {
    /// A tag, or the digest of a manifest that no tag was seen to name.
    pub(super) version: String,
    /// The manifest that was judged as this version.
    pub(super) root: Digest,
}

/// What is noted of a digest.
#[derive(Deserialize, PartialEq, Serialize)]
struct Noted {
    owner: Owner,
    /// Whether the parts that it names are noted as well.
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

    /// The fetch, judged as this version.
    pub(super) fn judges(&self, fetch: Fetch, image: &str) -> Fetch {
        fetch.part_of(image, &self.version, &super::shown_path(image, &self.version))
    }
}

/// The version through which this was offered; none where it was not.
pub(super) fn noted(proxy: &Repository, image: &str, digest: &Digest) -> Result<Option<Owner>, Failure> {
    let entry = proxy.get_json::<Noted>(&records::owner(image, digest))?;
    Ok(entry.map(|entry| entry.value.owner))
}

/// The version that a manifest is judged as. What no tag was seen to name is judged by its own signatures where a policy goes by those, and
/// else by its image alone: then there is none.
pub(super) fn owner(asked: &ManifestRequest, digest: &Digest) -> Result<Option<Owner>, Failure> {
    let known = noted(asked.proxy, asked.image, digest)?;
    if !asked.judged_by_provenance {
        return Ok(known);
    }
    let owner = match known {
        Some(owner) if statements::still_stands(asked, &owner)? => owner,
        Some(moved) => Owner::itself(&moved.root),
        None => Owner::itself(digest),
    };
    if owner.version == owner.root.as_str() {
        statements::state(asked, &owner.version, &owner.root)?;
    }
    Ok(Some(owner))
}

/// Notes the parts of a manifest that is offered as this version.
pub(super) fn note(
    proxy: &Repository,
    image: &str,
    manifest: &Digest,
    bytes: &[u8],
    owner: &Owner,
) -> Result<(), Failure> {
    let Ok(Named { config, layers, manifests }) = serde_json::from_slice::<Named>(bytes) else {
        return Ok(());
    };
    let all = config.into_iter().chain(layers.into_iter().flatten()).chain(manifests.into_iter().flatten());
    let parts: Vec<Digest> =
        all.filter_map(|part| crate::name::digest(&part.digest).ok()).take(MOST_PARTS).collect();
    let whole = Noted { owner: owner.clone(), has_parts: true };
    let known = proxy.get_json::<Noted>(&records::owner(image, manifest))?;
    let mut change = proxy.begin()?;
    // Another version may have taken over parts that both have.
    let is_new = add(proxy, &mut change, image, &parts, owner)?;
    if is_new || known.is_none_or(|known| known.value != whole) {
        change.put_json(&records::owner(image, manifest), &whole, Expectation::Anything, &[])?;
        let _whoever_is_faster_noted_the_same = change.commit()?;
    }
    Ok(())
}

/// Notes what refers to a manifest of this version.
pub(super) fn note_referrers(
    proxy: &Repository,
    image: &str,
    referrers: &[Digest],
    owner: &Owner,
) -> Result<(), Failure> {
    let mut change = proxy.begin()?;
    if add(proxy, &mut change, image, referrers, owner)? {
        let _whoever_is_faster_noted_the_same = change.commit()?;
    }
    Ok(())
}

/// Adds the parts of a version to a change; false where all of them are noted.
pub(super) fn add(
    proxy: &Repository,
    change: &mut Transaction,
    image: &str,
    parts: &[Digest],
    owner: &Owner,
) -> Result<bool, Failure> {
    let mut is_new = false;
    for part in parts {
        if noted(proxy, image, part)?.as_ref() != Some(owner) {
            let noted = Noted { owner: owner.clone(), has_parts: false };
            change.put_json(&records::owner(image, part), &noted, Expectation::Anything, &[])?;
            is_new = true;
        }
    }
    Ok(is_new)
}
