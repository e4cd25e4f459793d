//! A folder as the target of an export. Files in it are complete or absent, and no path leads out
//! of it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::io::AsyncWriteExt as _;

use crate::client::MAX_DOCUMENT_BYTES;
use crate::digests::{Digests, sha256};
use crate::error::MoveError;
use crate::stream::{ByteSource, Measured, StreamVerdict, measure, open_file, verified};

/// Prefix of the names of temporary files.
pub(crate) const UNFINISHED: &str = ".packhouse-part-";

/// A folder for reading and writing files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned() }
    }

    /// The location of a file in the folder.
    ///
    /// # Errors
    /// Fails with `Refused` if the path could lead out of the folder.
    pub(crate) fn at(&self, path: &str) -> Result<PathBuf, MoveError> {
        let mut at = self.root.clone();
        for segment in path.split('/') {
            let bad =
                segment.is_empty() || matches!(segment, "." | "..") || segment.contains(['\\', '\0', ':']);
            // A colon is refused, because it selects an alternate stream on some systems. The
            // layouts of exports need no colon, not even in names of digests.
            if bad || segment.chars().any(char::is_control) {
                return Err(MoveError::Refused(format!("`{path}` is not allowed as the path of a file")));
            }
            at.push(segment);
        }
        Ok(at)
    }

    /// Reads the file if it exists and has these digests. Otherwise returns `None`.
    pub(crate) async fn holds(&self, path: &str, stated: &Digests) -> Result<Option<Measured>, MoveError> {
        let at = self.at(path)?;
        let opened = match open_file(&at).await {
            Err(MoveError::Missing(_)) => return Ok(None),
            opened => opened?,
        };
        match measure(opened, stated.clone(), None).await {
            Ok(measured) => Ok(Some(measured)),
            // The caller writes a file with other content again.
            Err(MoveError::Refused(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Writes a verified stream to a file.
    pub(crate) async fn take(
        &self,
        path: &str,
        opened: ByteSource,
        stated: Digests,
        size: Option<u64>,
    ) -> Result<Measured, MoveError> {
        let at = self.at(path)?;
        let modified = opened.modified;
        let (stream, verdict) = verified(opened, stated, size);
        let measured = write(&at, stream, &verdict).await?;
        if let Some(modified) = modified {
            set_modified(&at, modified);
        }
        Ok(measured)
    }

    /// Reads a document.
    pub(crate) async fn document(&self, path: &str) -> Result<Bytes, MoveError> {
        open_file(&self.at(path)?).await?.gather(MAX_DOCUMENT_BYTES).await
    }

    /// Writes these bytes, unless the file has them already.
    pub(crate) async fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), MoveError> {
        let (at, bytes) = (self.at(path)?, bytes.into());
        if self.holds(path, &Digests::sha256(&sha256(&bytes))).await?.is_some() {
            return Ok(());
        }
        let opened =
            ByteSource { stream: futures::stream::iter([Ok(bytes)]).boxed(), length: None, modified: None };
        let (stream, verdict) = verified(opened, Digests::default(), None);
        write(&at, stream, &verdict).await.map(drop)
    }
}

/// Removes the temporary files of killed runs.
pub(crate) fn sweep(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Symbolic links are skipped, because they could lead out of the folder.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sweep(&entry.path())?;
        } else if kind.is_file() && entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Sets the modification time of a file to its time of publication.
pub(crate) fn set_modified(at: &Path, modified: jiff::Timestamp) {
    let time = std::time::SystemTime::from(modified);
    // Errors are ignored: the time is in export.jsonl as well.
    let _ = std::fs::File::options().write(true).open(at).and_then(|file| file.set_modified(time));
}

/// Writes the stream to a temporary file, and renames the file once it is complete and synced.
async fn write(
    at: &Path,
    mut stream: BoxStream<'static, std::io::Result<Bytes>>,
    verdict: &StreamVerdict,
) -> Result<Measured, MoveError> {
    let failed = |error: std::io::Error| MoveError::local(&format!("write {}", at.display()), &error);
    let folder = at.parent().unwrap_or(at);
    tokio::fs::create_dir_all(folder).await.map_err(failed)?;
    // The file is deleted on drop, unless it is renamed.
    let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).map_err(failed)?;
    let (file, path) = temporary.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => file.write_all(&piece).await.map_err(failed)?,
            Err(error) => {
                return Err(match verdict.get() {
                    Some(Err(fault)) => fault,
                    _ => broken(error),
                });
            }
        }
    }
    let measured = verdict
        .get()
        .unwrap_or_else(|| Err(MoveError::Unavailable("the source ended early".to_owned(), None)))?;
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).await.map_err(failed)?;
    }
    drop(file);
    path.persist(at).map_err(|error| failed(error.error))?;
    Ok(measured)
}

/// Extracts the original error from an error of a stream.
pub(crate) fn broken(error: std::io::Error) -> MoveError {
    match error.into_inner().map(|inner| inner.downcast::<MoveError>()) {
        Some(Ok(fault)) => *fault,
        Some(Err(other)) => MoveError::Unavailable(other.to_string(), None),
        None => MoveError::Unavailable("the stream ended early".to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let folder = Folder::new(Path::new("/x"));
        for wrong in ["", "/etc/passwd", "a//b", "../a", "a/../../b", "a/./b", "a\\b", "a\0", "a/", "C:x"] {
            assert!(folder.at(wrong).is_err(), "{wrong}");
        }
        assert_eq!(folder.at("a/b-1.0.jar").unwrap(), Path::new("/x/a/b-1.0.jar"));
    }

    #[tokio::test]
    async fn a_file_is_complete_or_absent() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let opened = |text: &'static str| ByteSource {
            stream: futures::stream::iter([Ok(Bytes::from(text))]).boxed(),
            length: None,
            modified: Some("2020-01-02T03:04:05Z".parse().unwrap()),
        };
        let right = Digests::sha256(&sha256(b"abc"));
        assert!(folder.take("a/b", opened("abd"), right.clone(), None).await.is_err());
        assert_eq!(std::fs::read_dir(home.path().join("a")).unwrap().count(), 0);
        folder.take("a/b", opened("abc"), right.clone(), None).await.unwrap();
        assert!(folder.holds("a/b", &right).await.unwrap().is_some());
        assert!(folder.holds("a/b", &Digests::sha256(&sha256(b"x"))).await.unwrap().is_none());
        let time = std::fs::metadata(home.path().join("a/b")).unwrap().modified().unwrap();
        assert_eq!(jiff::Timestamp::try_from(time).unwrap().to_string(), "2020-01-02T03:04:05Z");
    }
}
