//! What retention asks of the format: what tags name, and the manifests that nothing points to any more.

use crate::records::{self, ManifestRecord, TagRecord};
use crate::{Oci, untagged};
use packhouse_sdk::{
    Context, Digest, Failure, Repository, Retention, Unshown, UnshownPage, VersionFacts, VersionId,
};

/// Manifests that are looked at for one page.
const PAGE: u32 = 500;
/// What a tag that says something about a manifest ends with, as cosign writes it.
const SAYING: [&str; 4] = ["", ".sig", ".att", ".sbom"];
/// Words by which a version's tag says that it comes before a release.
const BEFORE: [&str; 9] = ["alpha", "beta", "rc", "pre", "dev", "snapshot", "nightly", "canary", "preview"];

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
            if !untagged::is_pointed_to(repository, image, &digest, &entry.value)? {
                page.items.push(unshown(image, &digest, &entry.value));
            }
        }
        Ok(page)
    }
}

fn judge(repository: &Repository, id: &VersionId) -> Result<Option<VersionFacts>, Failure> {
    let image = id.name.as_str();
    let Some(tag) = repository.get_json::<TagRecord>(&records::tag(image, &id.version))? else {
        return unshown_still(repository, id);
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

/// Of a manifest by its digest, where nothing points to it.
fn unshown_still(repository: &Repository, id: &VersionId) -> Result<Option<VersionFacts>, Failure> {
    let Ok(digest) = id.version.parse::<Digest>() else { return Ok(None) };
    let key = records::manifest(&id.name, &digest);
    let Some(entry) = repository.get_json::<ManifestRecord>(&key)? else { return Ok(None) };
    if untagged::is_pointed_to(repository, &id.name, &digest, &entry.value)? {
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

/// What a tag of the form `sha256-HEX.sig` says something about: signatures of before there were referrers.
fn subject(tag: &str) -> Option<Digest> {
    let (hex, kind) = tag.strip_prefix("sha256-")?.split_at_checked(64)?;
    let digest = format!("sha256:{hex}").parse().ok()?;
    SAYING.contains(&kind).then_some(digest)
}

/// Of a tag that is a version's number. `1.2-alpine` is no pre-release, `1.2-rc.1` is one.
fn prerelease(tag: &str) -> Option<bool> {
    let number = tag.strip_prefix('v').unwrap_or(tag);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let lower = number.to_ascii_lowercase();
    let mut words = lower.split(['-', '.', '_', '+']).skip(1);
    // `1.0rc1` and `1.0-rc1`: a number stands before the word, or none.
    let is_before = |word: &str| {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        BEFORE.contains(&word)
    };
    Some(words.any(is_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_a_release_is_no_pre_release() {
        for (tag, said) in [
            ("1.2.3", Some(false)),
            ("v1.2.3-rc.1", Some(true)),
            ("1.0rc1", Some(true)),
            ("3.12-slim", Some(false)),
            ("1.0-SNAPSHOT", Some(true)),
            ("latest", None),
            ("rc", None),
        ] {
            assert_eq!(prerelease(tag), said, "{tag}");
        }
    }

    #[test]
    fn a_tag_says_what_it_is_about() {
        let hex = "0".repeat(64);
        for kind in SAYING {
            assert_eq!(subject(&format!("sha256-{hex}{kind}")).unwrap().to_string(), format!("sha256:{hex}"));
        }
        for tag in ["latest", "sha256-00.sig", &format!("sha256-{hex}.other"), "sha256-ééé"] {
            assert_eq!(subject(tag), None, "{tag}");
        }
    }
}
