//! Facts for retention about tags, and about manifests without any reference.

use crate::records::{self, ManifestRecord, TagRecord};
use crate::{Oci, untagged};
use packhouse_sdk::{
    Context, Digest, Failure, Repository, Retention, Unshown, UnshownPage, VersionFacts, VersionId,
};

/// Number of manifests that are examined for one page.
const PAGE: u32 = 500;
/// The suffixes of a tag about a manifest, as cosign writes them.
const COSIGN_SUFFIXES: [&str; 4] = ["", ".sig", ".att", ".sbom"];
/// The words that mark a tag as a pre-release.
const PRERELEASE_WORDS: [&str; 9] =
    ["alpha", "beta", "rc", "pre", "dev", "snapshot", "nightly", "canary", "preview"];

impl Retention for Oci {
    fn judge_versions(cx: &Context, ids: &[VersionId]) -> Result<Vec<Option<VersionFacts>>, Failure> {
        let repository = cx.target()?;
        ids.iter().map(|id| judge(repository, id)).collect()
    }

    fn list_unshown(cx: &Context, after: &str) -> Result<UnshownPage, Failure> {
        let repository = cx.target()?;
        let mut page = UnshownPage::default();
        let entries = repository.scan(records::all_manifests()).after(after).page(PAGE);
        for entry in entries.take(PAGE as usize) {
            let entry = entry?.json::<ManifestRecord>()?;
            page.next = Some(entry.key.clone());
            let Some((image, digest)) = records::of_manifest(&entry.key) else { continue };
            if !untagged::is_referenced(repository, image, &digest, &entry.value)? {
                page.items.push(unshown(image, &digest, &entry.value));
            }
        }
        Ok(page)
    }
}

fn judge(repository: &Repository, id: &VersionId) -> Result<Option<VersionFacts>, Failure> {
    let image = id.name.as_str();
    let Some(tag) = repository.get_json::<TagRecord>(&records::tag(image, &id.version))? else {
        return judge_unreferenced(repository, id);
    };
    let digest = tag.value.digest;
    let follows = match subject(&id.version) {
        Some(subject) => subject != digest && repository.get(&records::manifest(image, &subject))?.is_some(),
        None => false,
    };
    Ok(Some(VersionFacts {
        tagged: Some(true),
        prerelease: prerelease(&id.version),
        unit: digest.to_string(),
        follows,
        ..VersionFacts::default()
    }))
}

/// Returns the facts of a manifest without any reference. The version in `id` is the digest of the
/// manifest.
fn judge_unreferenced(repository: &Repository, id: &VersionId) -> Result<Option<VersionFacts>, Failure> {
    let Ok(digest) = id.version.parse::<Digest>() else { return Ok(None) };
    let key = records::manifest(&id.name, &digest);
    let Some(entry) = repository.get_json::<ManifestRecord>(&key)? else { return Ok(None) };
    if untagged::is_referenced(repository, &id.name, &digest, &entry.value)? {
        return Ok(None);
    }
    Ok(Some(VersionFacts { tagged: Some(false), unit: digest.to_string(), ..VersionFacts::default() }))
}

fn unshown(image: &str, digest: &Digest, record: &ManifestRecord) -> Unshown {
    Unshown {
        published: (record.time > 0).then_some(record.time),
        bytes: record.size.saturating_add(record.content),
        ..Unshown::new(VersionId::new(image, digest.as_str()))
    }
}

/// The manifest that a tag of the form `sha256-HEX.sig` is about. Cosign used such tags before
/// registries supported referrers.
fn subject(tag: &str) -> Option<Digest> {
    let (hex, kind) = tag.strip_prefix("sha256-")?.split_at_checked(64)?;
    let digest = format!("sha256:{hex}").parse().ok()?;
    COSIGN_SUFFIXES.contains(&kind).then_some(digest)
}

/// Returns true if the version number in a tag is a pre-release, such as `1.2-rc.1`, and false for
/// others, such as `1.2-alpine`. `None` for a tag that is not a version number.
fn prerelease(tag: &str) -> Option<bool> {
    let number = tag.strip_prefix('v').unwrap_or(tag);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let lower = number.to_ascii_lowercase();
    let mut words = lower.split(['-', '.', '_', '+']).skip(1);
    // `1.0rc1` or `1.0-rc1`: the word may follow a number directly.
    let is_prerelease = |word: &str| {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        PRERELEASE_WORDS.contains(&word)
    };
    Some(words.any(is_prerelease))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_a_release_is_not_a_pre_release() {
        for (tag, expected) in [
            ("1.2.3", Some(false)),
            ("v1.2.3-rc.1", Some(true)),
            ("1.0rc1", Some(true)),
            ("3.12-slim", Some(false)),
            ("1.0-SNAPSHOT", Some(true)),
            ("latest", None),
            ("rc", None),
        ] {
            assert_eq!(prerelease(tag), expected, "{tag}");
        }
    }

    #[test]
    fn the_tag_of_a_signature_names_its_subject() {
        let hex = "0".repeat(64);
        for kind in COSIGN_SUFFIXES {
            assert_eq!(subject(&format!("sha256-{hex}{kind}")).unwrap().to_string(), format!("sha256:{hex}"));
        }
        for tag in ["latest", "sha256-00.sig", &format!("sha256-{hex}.other"), "sha256-ééé"] {
            assert_eq!(subject(tag), None, "{tag}");
        }
    }
}
