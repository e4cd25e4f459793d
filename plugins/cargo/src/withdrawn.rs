//! Records of the versions that a proxy has fetched. Each record contains the version's line. With
//! this line, the proxy can still offer the version if it vanishes from the upstream. Vanished
//! versions are marked as withdrawn.

use crate::line::{UpstreamLine, without_build};
use crate::name::Name;
use crate::records::fetched;
use packhouse_sdk::{Entry, Error, Expectation, Outcome, Repository, Version};
use serde::{Deserialize, Serialize};

/// The record of a fetched version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FetchedVersion {
    line: String,
    /// True if the version has vanished from the upstream.
    withdrawn: bool,
}

/// Records a version that is being fetched, and lists it with its publication time. The host
/// computes the version's age from this time.
pub(crate) fn record_fetched(proxy: &Repository, name: &Name, line: &UpstreamLine) -> Result<(), Error> {
    let key = format!("{}{}", fetched(name), without_build(&line.version));
    let record = FetchedVersion { line: line.text.clone(), withdrawn: false };
    let before = proxy.get_json::<FetchedVersion>(&key)?;
    if before.as_ref().is_some_and(|before| before.value == record) {
        return Ok(());
    }
    let mut change = proxy.begin()?;
    change
        .put_json(&key, &record, Expectation::unchanged(before.as_ref()), &[])?
        .show(&published(name, line));
    let _stale_means_recorded_by_another = change.commit()?;
    Ok(())
}

fn published(name: &Name, line: &UpstreamLine) -> Version {
    let version = Version::new(name.as_str(), line.version.to_string()).property("name", &line.name);
    let version = if line.yanked { version.state("yanked") } else { version };
    Version { published: line.published, ..version }
}

/// Marks fetched versions that the upstream no longer has, and removes the mark from versions that
/// it has again. Returns the versions that have vanished.
pub(crate) fn update(
    proxy: &Repository,
    name: &Name,
    spelling: &str,
    known: &[UpstreamLine],
) -> Result<Vec<UpstreamLine>, Error> {
    let mut gone = Vec::new();
    for entry in proxy.scan(fetched(name)) {
        let entry: Entry<FetchedVersion> = entry?.json()?;
        let Some(line) = UpstreamLine::read(&entry.value.line) else { continue };
        if !line.name.eq_ignore_ascii_case(spelling) {
            continue;
        }
        let is_upstream =
            known.iter().any(|other| without_build(&other.version) == without_build(&line.version));
        if is_upstream == entry.value.withdrawn {
            toggle_mark(proxy, name, &line, &entry)?;
        }
        if !is_upstream {
            gone.push(line);
        }
    }
    Ok(gone)
}

/// Marks a version as withdrawn, or removes the mark if the version has it. If the commit is stale,
/// another request has made the same change.
fn toggle_mark(
    proxy: &Repository,
    name: &Name,
    line: &UpstreamLine,
    entry: &Entry<FetchedVersion>,
) -> Result<(), Error> {
    let withdrawn = !entry.value.withdrawn;
    let record = FetchedVersion { withdrawn, ..entry.value.clone() };
    let version = published(name, line);
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
