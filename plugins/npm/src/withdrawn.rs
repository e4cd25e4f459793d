//! Versions that a proxy fetched before the upstream removed them. The proxy marks these versions
//! as withdrawn, and offers them only if the host permits it.

use crate::manifest::license;
use crate::name::PackageName;
use crate::upstream_packument::UpstreamVersion;
use crate::upstream_statements::statements;
use crate::version_content::VersionContent;
use packhouse_sdk::{Context, Entry, Error, Expectation, Outcome, Release, Repository, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Record of a fetched version, with all data that the proxy needs to offer the version again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FetchedRecord {
    tarball: String,
    integrity: Option<String>,
    shasum: Option<String>,
    abbreviated: String,
    full: String,
    dist: String,
    deprecated: Option<String>,
    attestations: Option<Map<String, Value>>,
    time: u64,
    /// Set if the version is marked as withdrawn.
    withdrawn: bool,
    /// Set if the proxy knows the version's attestations, or knows that it has no attestations.
    #[serde(default)]
    stated: bool,
}

impl FetchedRecord {
    fn into_version(self) -> UpstreamVersion {
        let Self { abbreviated, full, dist, deprecated, attestations, time, .. } = self;
        let content = VersionContent { abbreviated, full, dist, deprecated, attestations, time };
        UpstreamVersion { content, tarball: self.tarball, integrity: self.integrity, shasum: self.shasum }
    }
}

fn fetched(name: &PackageName) -> String {
    format!("u/{name}/")
}

/// Records a version that a client fetches. Publishes the version's time, licence and attestations,
/// by which the host judges the version. If the upstream fails to send the attestations, the next
/// call requests them again.
pub(crate) fn remember(
    cx: &Context,
    proxy: &Repository,
    name: &PackageName,
    number: &str,
    version: &UpstreamVersion,
) -> Result<(), Error> {
    let key = format!("{}{number}", fetched(name));
    let before = proxy.get_json::<FetchedRecord>(&key)?;
    let is_signed = version.content.attestations.is_some();
    if before.as_ref().is_some_and(|entry| entry.value.stated || !is_signed) {
        return Ok(());
    }
    let statements = if is_signed { statements(cx, proxy, name, number, version) } else { Some(Vec::new()) };
    let stated = statements.is_some();
    if before.is_some() && !stated {
        return Ok(());
    }
    let VersionContent { abbreviated, full, dist, deprecated, attestations, time } = version.content.clone();
    let (tarball, integrity, shasum) =
        (version.tarball.clone(), version.integrity.clone(), version.shasum.clone());
    let record = FetchedRecord {
        tarball,
        integrity,
        shasum,
        abbreviated,
        full,
        dist,
        deprecated,
        attestations,
        time,
        withdrawn: before.is_some_and(|entry| entry.value.withdrawn),
        stated,
    };
    let published = (time > 0).then_some(time);
    let mut published = Version { published, ..Version::new(name.as_str(), number) };
    let license = serde_json::from_str(&record.full).map(|members| license(&members)).unwrap_or_default();
    if !license.is_empty() {
        published = published.property("license", license);
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &record, Expectation::Anything, &[])?.show(&published);
    for statement in statements.into_iter().flatten() {
        change.attest(&statement);
    }
    let _best_effort = change.commit()?;
    Ok(())
}

/// Returns the manifest of a fetched version, as the upstream had it at the time of the fetch.
pub(crate) fn manifest(
    proxy: &Repository,
    name: &PackageName,
    number: &str,
) -> Result<Option<String>, Error> {
    let entry = proxy.get_json::<FetchedRecord>(&format!("{}{number}", fetched(name)))?;
    Ok(entry.map(|entry| entry.value.full))
}

/// Marks the fetched versions that the upstream no longer has as withdrawn, and removes the mark of
/// versions that it has again. Returns the withdrawn versions that the proxy may offer.
pub(crate) fn find(
    proxy: &Repository,
    name: &PackageName,
    known: &BTreeSet<String>,
) -> Result<BTreeMap<String, UpstreamVersion>, Error> {
    let prefix = fetched(name);
    let mut found = Vec::new();
    for entry in proxy.scan(&prefix) {
        let entry: Entry<FetchedRecord> = entry?.json()?;
        let number = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        if known.contains(&number) == entry.value.withdrawn {
            mark(proxy, name, &number, &entry)?;
        }
        if !known.contains(&number) {
            found.push((number, entry.value.into_version()));
        }
    }
    let offered = proxy.offered(name.as_str(), found, |(number, version)| {
        let time = version.content.time;
        Release::of(number, (time > 0).then_some(time), true)
    })?;
    Ok(offered.into_iter().collect())
}

/// Marks a version as withdrawn, or removes the mark if the upstream has it again. A stale commit
/// is ignored, because the concurrent change has set the same mark.
fn mark(
    proxy: &Repository,
    name: &PackageName,
    number: &str,
    entry: &Entry<FetchedRecord>,
) -> Result<(), Error> {
    let withdrawn = !entry.value.withdrawn;
    let mut record: Map<String, Value> = match serde_json::to_value(&entry.value)? {
        Value::Object(record) => record,
        _ => return Ok(()),
    };
    record.insert("withdrawn".to_owned(), Value::Bool(withdrawn));
    let version = Version::new(name.as_str(), number);
    let version = if withdrawn {
        version.state("withdrawn").property("reason", "it is no longer there upstream")
    } else {
        version
    };
    let mut change = proxy.begin()?;
    change.put_json(&entry.key, &record, Expectation::Revision(entry.revision), &[])?.show(&version);
    let (Outcome::Applied(_) | Outcome::Stale(_) | Outcome::UnknownBlobs(_)) = change.commit()?;
    Ok(())
}
