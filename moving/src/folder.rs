//! A folder as the place that something is moved to: files that are whole or not there, and paths that stay within it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::io::AsyncWriteExt as _;

use crate::client::MOST_OF_A_DOCUMENT;
use crate::digests::{Digests, sha256};
use crate::fault::Fault;
use crate::stream::{Came, Opened, Verdict, measure, open_file, verified};

/// How the names of files begin that are being written.
pub(crate) const UNFINISHED: &str = ".packhouse-part-";

/// A folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder of this path.
    pub(crate) fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned() }
    }

    /// Where a file of it lies.
    ///
    /// # Errors
    /// `Refused` for a path that could lead out of the folder.
    pub(crate) fn at(&self, path: &str) -> Result<PathBuf, Fault> {
        let mut at = self.root.clone();
        for segment in path.split('/') {
            let bad =
                segment.is_empty() || matches!(segment, "." | "..") || segment.contains(['\\', '\0', ':']);
            // A digest's colon stands in no file's name, and on some systems a colon begins another stream.
            if bad || segment.chars().any(char::is_control) {
                return Err(Fault::Refused(format!("`{path}` is no path that a file here may have")));
            }
            at.push(segment);
        }
        Ok(at)
    }

    /// Whether the file is there with these bytes; what came when it was read, where it is.
    pub(crate) async fn holds(&self, path: &str, stated: &Digests) -> Result<Option<Came>, Fault> {
        let at = self.at(path)?;
        let opened = match open_file(&at).await {
            Err(Fault::Missing(_)) => return Ok(None),
            opened => opened?,
        };
        match measure(opened, stated.clone(), None).await {
            Ok(came) => Ok(Some(came)),
            // A file that is there and is another is written again.
            Err(Fault::Refused(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Writes what is read, once all of it is right.
    pub(crate) async fn take(
        &self,
        path: &str,
        opened: Opened,
        stated: Digests,
        size: Option<u64>,
    ) -> Result<Came, Fault> {
        let at = self.at(path)?;
        let modified = opened.modified;
        let (stream, verdict) = verified(opened, stated, size);
        let came = write(&at, stream, &verdict).await?;
        if let Some(modified) = modified {
            set_modified(&at, modified);
        }
        Ok(came)
    }

    /// Reads a document.
    pub(crate) async fn document(&self, path: &str) -> Result<Bytes, Fault> {
        open_file(&self.at(path)?).await?.gather(MOST_OF_A_DOCUMENT).await
    }

    /// Writes these bytes, unless they are there.
    pub(crate) async fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), Fault> {
        let (at, bytes) = (self.at(path)?, bytes.into());
        if self.holds(path, &Digests::sha256(&sha256(&bytes))).await?.is_some() {
            return Ok(());
        }
        let opened =
            Opened { stream: futures::stream::iter([Ok(bytes)]).boxed(), length: None, modified: None };
        let (stream, verdict) = verified(opened, Digests::default(), None);
        write(&at, stream, &verdict).await.map(drop)
    }
}

/// Removes what a run that was killed was writing.
pub(crate) fn sweep(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A link could lead out of the folder.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sweep(&entry.path())?;
        } else if kind.is_file() && entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A file's time is the time at which it was published.
pub(crate) fn set_modified(at: &Path, modified: jiff::Timestamp) {
    let time = std::time::SystemTime::from(modified);
    // A time that cannot be kept stands in export.jsonl all the same.
    let _ = std::fs::File::options().write(true).open(at).and_then(|file| file.set_modified(time));
}

/// Writes beside the place, and puts it there once it is whole and on the disk.
async fn write(
    at: &Path,
    mut stream: BoxStream<'static, std::io::Result<Bytes>>,
    verdict: &Verdict,
) -> Result<Came, Fault> {
    let said = |error: std::io::Error| Fault::local(&format!("write {}", at.display()), &error);
    let folder = at.parent().unwrap_or(at);
    tokio::fs::create_dir_all(folder).await.map_err(said)?;
    // It goes by itself unless it is put in place.
    let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).map_err(said)?;
    let (file, path) = temporary.into_parts();
    let mut file = tokio::fs::File::from_std(file);
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => file.write_all(&piece).await.map_err(said)?,
            Err(error) => {
                return Err(match verdict.get() {
                    Some(Err(fault)) => fault,
                    _ => broken(error),
                });
            }
        }
    }
    let came = verdict.get().unwrap_or_else(|| Err(Fault::Away("the source broke off".to_owned(), None)))?;
    file.flush().await.map_err(said)?;
    file.sync_all().await.map_err(said)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).await.map_err(said)?;
    }
    drop(file);
    path.persist(at).map_err(|error| said(error.error))?;
    Ok(came)
}

/// The fault within an error of a stream.
pub(crate) fn broken(error: std::io::Error) -> Fault {
    match error.into_inner().map(|inner| inner.downcast::<Fault>()) {
        Some(Ok(fault)) => *fault,
        Some(Err(other)) => Fault::Away(other.to_string(), None),
        None => Fault::Away("the stream broke off".to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out() {
        let folder = Folder::new(Path::new("/x"));
        for wrong in ["", "/etc/passwd", "a//b", "../a", "a/../../b", "a/./b", "a\\b", "a\0", "a/", "C:x"] {
            assert!(folder.at(wrong).is_err(), "{wrong}");
        }
        assert_eq!(folder.at("a/b-1.0.jar").unwrap(), Path::new("/x/a/b-1.0.jar"));
    }

    #[tokio::test]
    async fn a_file_is_whole_or_not_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        let opened = |text: &'static str| Opened {
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
