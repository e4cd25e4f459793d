//! The versions of an artifact that has many: their keys name them, and when the last of them changed is remembered for each run of
//! them, so that the next metadata after a publish cost the run that the new version is in.

use crate::records;
use crate::version::Version;
use packhouse_sdk::{Error, PieceParts, Repository, runs};
use std::ops::Range;

/// An artifact with more versions than these has many.
pub(crate) const MANY: usize = 64;

/// See the module.
pub(crate) struct ManyVersions {
    /// In the order of their keys.
    pub(crate) versions: Vec<Version>,
    /// When one of them changed last, in ms since 1970.
    pub(crate) modified: u64,
}

/// All versions of the artifact in this folder.
///
/// # Errors
/// The host's.
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
    let versions = keys.iter().filter_map(|key| key.get(prefix.len()..)).map(Version::new).collect();
    Ok(ManyVersions { versions, modified })
}

/// Which versions there are is said by the name: what is remembered depends on their records alone.
fn piece_name(prefix: &str, run: &[String]) -> String {
    let mut name = format!("changed\n{prefix}\n");
    for key in run {
        name.push_str(key.get(prefix.len()..).unwrap_or_default());
        name.push('\n');
    }
    name
}
