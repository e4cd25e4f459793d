//! `export.jsonl`: what an export holds. The first line says of what, each further one is a file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::folder::UNFINISHED;

/// Its name in the folder.
pub(crate) const NAME: &str = "export.jsonl";
/// The version of what stands in it.
const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Head {
    packhouse_export: u32,
    pub(crate) format: String,
    pub(crate) repository: String,
}

/// A file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Exported {
    /// In the folder.
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// In hex.
    pub(crate) sha256: String,
    /// Bytes.
    pub(crate) size: u64,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) published_at: Option<String>,
    /// Empty, `yanked`, `deprecated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Exported {
    /// When it was published, as far as that is known.
    pub(crate) fn published(&self) -> Option<Timestamp> {
        self.published_at.as_ref()?.parse().ok()
    }
}

impl Head {
    /// Of a repository.
    pub(crate) fn new(format: &str, repository: &str) -> Head {
        Head { packhouse_export: VERSION, format: format.to_owned(), repository: repository.to_owned() }
    }
}

/// Reads what an export lists.
///
/// # Errors
/// Where there is none, or it is not one that this program reads.
pub(crate) fn read(folder: &Path) -> anyhow::Result<(Head, Vec<Exported>)> {
    let path = folder.join(NAME);
    let file = std::fs::File::open(&path)
        .with_context(|| format!("{} is no whole export: there is no {NAME} in it", folder.display()))?;
    let mut lines = BufReader::new(file).lines();
    let said = || format!("{} is no list of an export", path.display());
    let first = lines.next().transpose().with_context(said)?.unwrap_or_default();
    let head: Head = serde_json::from_str(&first).with_context(said)?;
    ensure!(
        head.packhouse_export == VERSION,
        "{} was written by another version of this program",
        path.display()
    );
    let mut files = Vec::new();
    for line in lines {
        files.push(serde_json::from_str(&line.with_context(said)?).with_context(said)?);
    }
    Ok((head, files))
}

/// Writes the list, in the order of the paths: two exports of the same have the same list.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn write(folder: &Path, head: &Head, mut files: Vec<Exported>) -> anyhow::Result<()> {
    files.sort_by(|one, other| (&one.path, &one.version).cmp(&(&other.path, &other.version)));
    files.dedup();
    let said = || format!("failed to write {}", folder.join(NAME).display());
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).with_context(said)?;
    let lines = std::iter::once(serde_json::to_string(head)).chain(files.iter().map(serde_json::to_string));
    let mut out = std::io::BufWriter::new(file.as_file_mut());
    for line in lines {
        writeln!(out, "{}", line.with_context(said)?).with_context(said)?;
    }
    out.flush().with_context(said)?;
    drop(out);
    file.as_file().sync_all().with_context(said)?;
    file.persist(folder.join(NAME)).with_context(said)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("no whole export"));
        let file = |path: &str| Exported {
            path: path.to_owned(),
            package: Some("p".to_owned()),
            version: None,
            sha256: "0".to_owned(),
            size: 1,
            published_at: Some("2020-01-02T03:04:05Z".to_owned()),
            state: None,
            reason: None,
        };
        let head = Head::new("x", "r");
        write(folder.path(), &head, vec![file("b"), file("a"), file("b")]).unwrap();
        assert_eq!(read(folder.path()).unwrap(), (head, vec![file("a"), file("b")]));
        std::fs::write(folder.path().join(NAME), "{}\n").unwrap();
        assert!(read(folder.path()).is_err());
    }
}
