//! A folder with a blob store of Nexus 3, read without its server. Each blob consists of
//! `ID.properties`, which describes it, and `ID.bytes`. These files are below `content/`, in
//! folders by volume and chapter or by date.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::file::{FileSender, MavenFile, is_checksum};
use crate::digests::Digests;
use crate::error::MoveError;
use crate::origin::Origin;

/// Maximum size of a blob's properties, in bytes.
const MAX_PROPERTIES_BYTES: u64 = 64 << 10;

/// Sends every blob of a repository to `found`, except deleted blobs and checksums.
pub(super) async fn walk(root: PathBuf, repository: String, found: FileSender) -> Result<(), MoveError> {
    let content = root.join("content");
    let content = if content.is_dir() { content } else { root };
    spawn_blocking(move || walk_folder(&content, &repository, &found))
        .await
        .unwrap_or_else(|error| Err(MoveError::Unavailable(error.to_string(), None)))
}

fn walk_folder(folder: &Path, repository: &str, found: &FileSender) -> Result<(), MoveError> {
    let failed =
        |error: std::io::Error| MoveError::local(&format!("read the folder {}", folder.display()), &error);
    let mut entries =
        std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            walk_folder(&path, repository, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "properties") {
            if entry.metadata().map_err(failed)?.len() > MAX_PROPERTIES_BYTES {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            if let Some(file) = file(&properties(&text), &path, repository)
                && found.blocking_send(file).is_err()
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn file(properties: &HashMap<String, String>, at: &Path, repository: &str) -> Option<MavenFile> {
    let text = |name: &str| properties.get(name).map(String::as_str);
    let path = text("@BlobStore.blob-name")?.trim_start_matches('/').to_owned();
    if text("@Bucket.repo-name") != Some(repository) || text("deleted") == Some("true") || is_checksum(&path)
    {
        return None;
    }
    let mut stated = Digests::default();
    stated.add("sha1", text("sha1").unwrap_or_default());
    let created = text("creationTime").and_then(|ms| ms.parse().ok());
    Some(MavenFile {
        path,
        origin: Origin::File(at.with_extension("bytes")),
        stated,
        size: text("size").and_then(|size| size.parse().ok()),
        published: created.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
    })
}

/// Parses Java properties: one name and one value in each line. A backslash escapes colons, equals
/// signs, spaces and backslashes.
fn properties(text: &str) -> HashMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with(['#', '!']));
    lines
        .filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            Some((unescaped(name.trim()), unescaped(value.trim())))
        })
        .collect()
}

fn unescaped(text: &str) -> String {
    let (mut out, mut symbols) = (String::new(), text.chars());
    while let Some(symbol) = symbols.next() {
        match symbol {
            '\\' => out.extend(symbols.next()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_of_a_blob_give_a_file() {
        let text = "#2024-03-15\n@BlobStore.created-by=admin\nsize=3\n@Bucket.repo-name=releases\ncreationTime=1577836800000\n\
                    @BlobStore.content-type=application/java-archive\n@BlobStore.blob-name=/org/a/1/a\\:b-1.jar\n\
                    sha1=a9993e364706816aba3e25717850c26c9cd0d89d\n";
        let read = properties(text);
        let found = file(&read, Path::new("/x/id.properties"), "releases").unwrap();
        assert_eq!(
            (found.path.as_str(), found.size, found.stated.sha1.is_some()),
            ("org/a/1/a:b-1.jar", Some(3), true)
        );
        assert_eq!(found.published.unwrap().to_string(), "2020-01-01T00:00:00Z");
        assert!(file(&read, Path::new("/x"), "other").is_none());
        assert!(file(&properties(&format!("{text}deleted=true\n")), Path::new("/x"), "releases").is_none());
    }
}
