//! Reads the versions of artifacts with many versions. The keys of the records contain the
//! versions. The plugin cuts the sorted keys into runs of adjacent keys. For each run, the host
//! caches the time of the last change. After a publish, the plugin reads only the records of the
//! changed run again.

use crate::records;
use crate::version::MavenVersion;
use packhouse_sdk::{Error, PieceParts, Repository, runs};
use std::ops::Range;

/// Number of versions above which an artifact is read in this way.
pub(crate) const MANY: usize = 64;

/// The versions of an artifact, with the time of their last change.
pub(crate) struct ManyVersions {
    /// The versions in the order of their keys.
    pub(crate) versions: Vec<MavenVersion>,
    /// Time of the last change of a version, in ms since 1970.
    pub(crate) modified: u64,
}

/// Reads all versions of the artifact in this folder.
///
/// # Errors
/// Returns the host's error.
pub(crate) fn read(repository: &Repository, folder: &str) -> Result<ManyVersions, Error> {
    let prefix = records::versions(folder);
    let keys = repository.keys(&prefix).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<Range<usize>> = runs(&keys, String::as_str).collect();
    let names: Vec<String> =
        runs.iter().map(|run| piece_name(&prefix, keys.get(run.clone()).unwrap_or_default())).collect();
    let newest = |at: usize| {
        let run = runs.get(at).cloned().unwrap_or_default();
        let before = run.start.checked_sub(1).and_then(|at| keys.get(at)).map(String::as_str);
        let mut newest = 0;
        for entry in repository.neighbours(&prefix, before, keys.get(run).unwrap_or_default()) {
            newest = records::read_time(&entry?.value).max(newest);
        }
        Ok::<u64, Error>(newest)
    };
    let note = |at| Ok::<_, Error>(Some(PieceParts { note: newest(at)?.to_string(), body: String::new() }));
    let mut modified = 0;
    for (at, found) in repository.pieces(&names, note)?.into_iter().enumerate() {
        let found = match found {
            Some(piece) => piece.note().parse().unwrap_or_default(),
            None => newest(at)?,
        };
        modified = modified.max(found);
    }
    let versions = keys.iter().filter_map(|key| key.get(prefix.len()..)).map(MavenVersion::new).collect();
    Ok(ManyVersions { versions, modified })
}

/// Returns the name under which the host caches the time of the last change in a run of keys. The
/// name contains the versions of the run, so that the cached time depends only on the records of
/// these versions.
fn piece_name(prefix: &str, run: &[String]) -> String {
    let mut name = format!("changed\n{prefix}\n");
    for key in run {
        name.push_str(key.get(prefix.len()..).unwrap_or_default());
        name.push('\n');
    }
    name
}
