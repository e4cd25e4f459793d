//! `export.jsonl`: the list of an export. The first line names the repository; each further line is
//! a file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::folder::UNFINISHED;

/// Name of the list in the export's folder.
pub(crate) const NAME: &str = "export.jsonl";
/// Version of the list's format.
const VERSION: u32 = 1;

/// The first line of the list.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ExportHead {
    packhouse_export: u32,
    pub(crate) format: String,
    pub(crate) repository: String,
}

/// A file in an export.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ExportedFile {
    /// Path in the folder.
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// SHA-256 in hex.
    pub(crate) sha256: String,
    pub(crate) size: u64,
    /// Time of publication by RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published_at: Option<String>,
    /// State of the version: empty, `yanked` or `deprecated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl ExportedFile {
    /// Time of publication, if it is known.
    pub(crate) fn published(&self) -> Option<Timestamp> {
        self.published_at.as_ref()?.parse().ok()
    }
}

impl ExportHead {
    pub(crate) fn new(format: &str, repository: &str) -> ExportHead {
        ExportHead { packhouse_export: VERSION, format: format.to_owned(), repository: repository.to_owned() }
    }
}

/// Reads the list of an export.
///
/// # Errors
/// Fails if there is no list or if its version is not supported.
pub(crate) fn read(folder: &Path) -> anyhow::Result<(ExportHead, Vec<ExportedFile>)> {
    let path = folder.join(NAME);
    let file = std::fs::File::open(&path)
        .with_context(|| format!("{} is not a complete export: it has no {NAME}", folder.display()))?;
    let mut lines = BufReader::new(file).lines();
    let failed = || format!("{} is not a valid list of an export", path.display());
    let first = lines.next().transpose().with_context(failed)?.unwrap_or_default();
    let head: ExportHead = serde_json::from_str(&first).with_context(failed)?;
    ensure!(
        head.packhouse_export == VERSION,
        "{} was written by another version of this program",
        path.display()
    );
    let mut files = Vec::new();
    for line in lines {
        files.push(serde_json::from_str(&line.with_context(failed)?).with_context(failed)?);
    }
    Ok((head, files))
}

/// Writes the list, sorted by path, so that two exports of the same content have the same list.
///
/// # Errors
/// Fails if the file cannot be written.
pub(crate) fn write(folder: &Path, head: &ExportHead, mut files: Vec<ExportedFile>) -> anyhow::Result<()> {
    files.sort_by(|one, other| (&one.path, &one.version).cmp(&(&other.path, &other.version)));
    files.dedup();
    let failed = || format!("failed to write {}", folder.join(NAME).display());
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).with_context(failed)?;
    let lines = std::iter::once(serde_json::to_string(head)).chain(files.iter().map(serde_json::to_string));
    let mut out = std::io::BufWriter::new(file.as_file_mut());
    for line in lines {
        writeln!(out, "{}", line.with_context(failed)?).with_context(failed)?;
    }
    out.flush().with_context(failed)?;
    drop(out);
    file.as_file().sync_all().with_context(failed)?;
    file.persist(folder.join(NAME)).with_context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("not a complete export"));
        let file = |path: &str| ExportedFile {
            path: path.to_owned(),
            package: Some("p".to_owned()),
            version: None,
            sha256: "0".to_owned(),
            size: 1,
            published_at: Some("2020-01-02T03:04:05Z".to_owned()),
            state: None,
            reason: None,
        };
        let head = ExportHead::new("x", "r");
        write(folder.path(), &head, vec![file("b"), file("a"), file("b")]).unwrap();
        assert_eq!(read(folder.path()).unwrap(), (head, vec![file("a"), file("b")]));
        std::fs::write(folder.path().join(NAME), "{}\n").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
