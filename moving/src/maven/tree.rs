//! A tree in a folder: all of it, or what an export lists.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::file::{Found, MavenFile, hand_on, is_checksum};
use crate::digests::Digests;
use crate::export::Exported;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::origin::Origin;

/// Finds every file of a folder, in the order of their names.
pub(super) async fn walk(root: PathBuf, found: Found) -> Result<(), Fault> {
    spawn_blocking(move || walk_folder(&root, "", &found))
        .await
        .unwrap_or_else(|error| Err(Fault::Away(error.to_string(), None)))
}

fn walk_folder(folder: &Path, prefix: &str, found: &Found) -> Result<(), Fault> {
    let said = |error: std::io::Error| Fault::local(&format!("read the folder {}", folder.display()), &error);
    let mut entries =
        std::fs::read_dir(folder).map_err(said)?.collect::<Result<Vec<_>, _>>().map_err(said)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // What has a name that is no text cannot be asked for by one.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        // A link could lead out of the folder, or in circles.
        let kind = entry.file_type().map_err(said)?;
        if kind.is_dir() && !name.starts_with('.') {
            walk_folder(&entry.path(), &path, found)?;
        } else if kind.is_file() && !is_checksum(&name) {
            let metadata = entry.metadata().map_err(said)?;
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

/// The files that an export lists.
pub(super) async fn listed(root: PathBuf, files: &[Exported], found: Found) -> Result<(), Fault> {
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
        hand_on(&found, file).await;
    }
    Ok(())
}
