//! Versions that a proxy has fetched and that have vanished upstream since: marked where people look, and offered further only
//! where the host says so.

use crate::manifest::license;
use crate::name::Name;
use crate::upstream_packument::UpstreamVersion;
use crate::upstream_statements::statements;
use crate::version_piece::Piece;
use packhouse_sdk::{Context, Entry, Error, Expectation, Outcome, Release, Repository, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of a version that was fetched: enough to offer it again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Fetched {
    tarball: String,
    integrity: Option<String>,
    shasum: Option<String>,
    abbreviated: String,
    full: String,
    dist: String,
    deprecated: Option<String>,
    attestations: Option<Map<String, Value>>,
    time: u64,
    /// Whether it is marked.
    withdrawn: bool,
    /// Whether the upstream was asked for what is signed of it.
    #[serde(default)]
    stated: bool,
}

impl Fetched {
    fn into_version(self) -> UpstreamVersion {
        let Self { abbreviated, full, dist, deprecated, attestations, time, .. } = self;
        let piece = Piece { abbreviated, full, dist, deprecated, attestations, time };
        UpstreamVersion { piece, tarball: self.tarball, integrity: self.integrity, shasum: self.shasum }
    }
}

fn fetched(name: &Name) -> String {
    format!("u/{name}/")
}

/// Remembers a version that is fetched, and shows since when it is published and what is signed of it: by that the host judges it. Where the
/// upstream cannot be asked for what is signed, it is asked the next time.
pub(crate) fn remember(
    cx: &Context,
    proxy: &Repository,
    name: &Name,
    number: &str,
    version: &UpstreamVersion,
) -> Result<(), Error> {
    let key = format!("{}{number}", fetched(name));
    let before = proxy.get_json::<Fetched>(&key)?;
    let is_signed = version.piece.attestations.is_some();
    if before.as_ref().is_some_and(|entry| entry.value.stated || !is_signed) {
        return Ok(());
    }
    let statements = if is_signed { statements(cx, proxy, name, number, version) } else { Some(Vec::new()) };
    let stated = statements.is_some();
    if before.is_some() && !stated {
        return Ok(());
    }
    let Piece { abbreviated, full, dist, deprecated, attestations, time } = version.piece.clone();
    let (tarball, integrity, shasum) =
        (version.tarball.clone(), version.integrity.clone(), version.shasum.clone());
    let record = Fetched {
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
    let mut shown = Version { published, ..Version::new(name.as_str(), number) };
    let stated = serde_json::from_str(&record.full).map(|members| license(&members)).unwrap_or_default();
    if !stated.is_empty() {
        shown = shown.property("license", stated);
    }
    let mut change = proxy.begin()?;
    change.put_json(&key, &record, Expectation::Anything, &[])?.show(&shown);
    for statement in statements.into_iter().flatten() {
        change.attest(&statement);
    }
    let _best_effort = change.commit()?;
    Ok(())
}

/// The manifest of a version that was fetched, as the upstream had it then.
pub(crate) fn manifest(proxy: &Repository, name: &Name, number: &str) -> Result<Option<String>, Error> {
    let entry = proxy.get_json::<Fetched>(&format!("{}{number}", fetched(name)))?;
    Ok(entry.map(|entry| entry.value.full))
}

/// Marks those that the upstream no longer knows. Answers them where they are still offered.
pub(crate) fn find(
    proxy: &Repository,
    name: &Name,
    known: &BTreeSet<String>,
) -> Result<BTreeMap<String, UpstreamVersion>, Error> {
    let prefix = fetched(name);
    let mut found = Vec::new();
    for entry in proxy.scan(&prefix) {
        let entry: Entry<Fetched> = entry?.json()?;
        let number = entry.key.get(prefix.len()..).unwrap_or_default().to_owned();
        if known.contains(&number) == entry.value.withdrawn {
            mark(proxy, name, &number, &entry)?;
        }
        if !known.contains(&number) {
            found.push((number, entry.value.into_version()));
        }
    }
    let offered = proxy.offered(name.as_str(), found, |(number, version)| {
        let time = version.piece.time;
        Release::of(number, (time > 0).then_some(time), true)
    })?;
    Ok(offered.into_iter().collect())
}

/// Marks a version, or takes the mark back when it is there again. Should somebody else do it at the same moment, it is done.
fn mark(proxy: &Repository, name: &Name, number: &str, entry: &Entry<Fetched>) -> Result<(), Error> {
    let withdrawn = !entry.value.withdrawn;
    let mut record: Map<String, Value> = match serde_json::to_value(&entry.value)? {
        Value::Object(record) => record,
        _ => return Ok(()),
    };
    record.insert("withdrawn".to_owned(), Value::Bool(withdrawn));
    let shown = Version::new(name.as_str(), number);
    let shown = if withdrawn {
        shown.state("withdrawn").property("reason", "it is no longer there upstream")
    } else {
        shown
    };
    let mut change = proxy.begin()?;
    change.put_json(&entry.key, &record, Expectation::Revision(entry.revision), &[])?.show(&shown);
    let (Outcome::Applied(_) | Outcome::Stale(_) | Outcome::UnknownBlobs(_)) = change.commit()?;
    Ok(())
}
