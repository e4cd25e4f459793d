//! A blob store of Nexus 3 in a folder, of a server that no longer runs: for each blob `ID.properties`, which says what it is, and
//! `ID.bytes`, below `content/` in folders by volume and chapter or by date.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::file::{Found, MavenFile, is_checksum};
use crate::digests::Digests;
use crate::fault::Fault;
use crate::origin::Origin;

/// Bytes of a blob's properties.
const MOST: u64 = 64 << 10;

/// Finds every blob of a repository that was not deleted.
pub(super) async fn walk(root: PathBuf, repository: String, found: Found) -> Result<(), Fault> {
    let content = root.join("content");
    let content = if content.is_dir() { content } else { root };
    spawn_blocking(move || walk_folder(&content, &repository, &found))
        .await
        .unwrap_or_else(|error| Err(Fault::Away(error.to_string(), None)))
}

fn walk_folder(folder: &Path, repository: &str, found: &Found) -> Result<(), Fault> {
    let said = |error: std::io::Error| Fault::local(&format!("read the folder {}", folder.display()), &error);
    let mut entries =
        std::fs::read_dir(folder).map_err(said)?.collect::<Result<Vec<_>, _>>().map_err(said)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(said)?);
        if kind.is_dir() {
            walk_folder(&path, repository, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "properties") {
            if entry.metadata().map_err(said)?.len() > MOST {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(said)?;
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

/// Java's properties: a name and a value a line, in which `\\` stands before a colon, an equals sign, a space and itself.
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
    fn a_blobs_properties_say_what_it_is() {
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
