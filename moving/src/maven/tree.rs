//! Finds the files of a folder: all of them, or those that an export lists.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::file::{FileSender, MavenFile, is_checksum, send_file};
use crate::digests::Digests;
use crate::error::MoveError;
use crate::export::ExportedFile;
use crate::folder::Folder;
use crate::origin::Origin;

/// Sends every file of a folder to `found`, in the order of the names, except checksums.
pub(super) async fn walk(root: PathBuf, found: FileSender) -> Result<(), MoveError> {
    spawn_blocking(move || walk_folder(&root, "", &found))
        .await
        .unwrap_or_else(|error| Err(MoveError::Unavailable(error.to_string(), None)))
}

fn walk_folder(folder: &Path, prefix: &str, found: &FileSender) -> Result<(), MoveError> {
    let failed =
        |error: std::io::Error| MoveError::local(&format!("read the folder {}", folder.display()), &error);
    let mut entries =
        std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // A name that is not UTF-8 cannot be used as a path.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        // Symbolic links are skipped, because they could lead out of the folder or in circles.
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && !name.starts_with('.') {
            walk_folder(&entry.path(), &path, found)?;
        } else if kind.is_file() && !is_checksum(&name) {
            let metadata = entry.metadata().map_err(failed)?;
            let published = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
            let (origin, stated) = (Origin::File(entry.path()), Digests::default());
            let file = MavenFile { path, origin, stated, size: Some(metadata.len()), published };
            if found.blocking_send(file).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sends the files that an export lists to `found`.
pub(super) async fn listed(
    root: PathBuf,
    files: &[ExportedFile],
    found: FileSender,
) -> Result<(), MoveError> {
    let folder = Folder::new(&root);
    for file in files {
        let origin = Origin::File(folder.at(&file.path)?);
        let file = MavenFile {
            path: file.path.clone(),
            origin,
            stated: Digests::sha256(&file.sha256),
            size: Some(file.size),
            published: file.published(),
        };
        send_file(&found, file).await;
    }
    Ok(())
}
