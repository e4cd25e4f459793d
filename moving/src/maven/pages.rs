//! Finds the files of a server that lists its folders: as HTML pages with links, like most servers,
//! or as Packhouse's own JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use url::Url;

use super::file::{FileSender, MavenFile, is_checksum, send_file};
use crate::client::{Client, HttpDocument, redacted};
use crate::digests::Digests;
use crate::error::MoveError;
use crate::html;
use crate::origin::Origin;
use crate::percent;

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 64;
/// Maximum number of pages of one folder.
const MAX_PAGES: usize = 100_000;

/// A page of a folder in Packhouse's JSON.
#[derive(Deserialize)]
struct FolderPage {
    entries: Vec<FolderEntry>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct FolderEntry {
    name: String,
    kind: String,
    size: Option<u64>,
    modified: Option<i64>,
}

/// Sends every file below the server's address to `found`.
pub(super) async fn walk(client: Arc<Client>, found: FileSender) -> Result<(), MoveError> {
    let mut folders = vec![(String::new(), 0)];
    let mut first = true;
    while let Some((folder, depth)) = folders.pop() {
        let listed = list(&client, &folder, &found).await;
        let below = match listed {
            Ok(below) => below,
            // Without a listing of the root, the search cannot find any file.
            Err(MoveError::Missing(text)) if first => return Err(MoveError::Refused(no_listing(&text))),
            Err(MoveError::Missing(_)) => Vec::new(),
            Err(fault) => return Err(fault),
        };
        first = false;
        if depth < MAX_DEPTH {
            folders.extend(below.into_iter().rev().map(|folder| (folder, depth + 1)));
        }
    }
    Ok(())
}

fn no_listing(text: &str) -> String {
    format!("{text}; the source must be a server that lists its folders, or a folder on this machine")
}

/// Sends the files of a folder to `found`. Returns the folders in it.
async fn list(client: &Arc<Client>, folder: &str, found: &FileSender) -> Result<Vec<String>, MoveError> {
    let (mut below, mut after) = (Vec::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let mut url = client.url(&percent::path(folder))?;
        if let Some(after) = &after {
            url.set_query(Some(&format!("limit=1000&after={}", percent::segment(after))));
        }
        let document = client.document(&url, "application/json, text/html;q=0.9, */*;q=0.1").await?;
        let Some(page) = page(&document) else {
            for name in names(&document) {
                let path = format!("{folder}{name}");
                if name.ends_with('/') {
                    below.push(path);
                } else {
                    send_entry(client, path, None, None, found).await?;
                }
            }
            return Ok(below);
        };
        for entry in page.entries {
            let path = format!("{folder}{}", entry.name);
            match entry.kind.as_str() {
                "folder" => below.push(format!("{}/", path.trim_end_matches('/'))),
                _ => {
                    let at = entry.modified.and_then(|at| Timestamp::from_millisecond(at).ok());
                    send_entry(client, path, entry.size, at, found).await?;
                }
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(below),
        }
    }
    Err(MoveError::Refused(format!(
        "the listing of the folder {folder} of {} has too many pages",
        redacted(client.base())
    )))
}

async fn send_entry(
    client: &Arc<Client>,
    path: String,
    size: Option<u64>,
    published: Option<Timestamp>,
    found: &FileSender,
) -> Result<(), MoveError> {
    if is_checksum(&path) {
        return Ok(());
    }
    let origin = Origin::Url(Arc::clone(client), client.url(&percent::path(&path))?);
    send_file(found, MavenFile { path, origin, stated: Digests::default(), size, published }).await;
    Ok(())
}

fn page(document: &HttpDocument) -> Option<FolderPage> {
    if document.media_type() != "application/json" {
        return None;
    }
    serde_json::from_slice(&document.bytes).ok()
}

/// Names of the files and folders directly below a page to which the page links. Names of folders
/// end with a slash.
fn names(document: &HttpDocument) -> BTreeSet<String> {
    let mut base = document.url.clone();
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    let links = html::links(&document.text(), &[]);
    links.iter().filter_map(|link| name(&base, &link.href)).collect()
}

fn name(base: &Url, href: &str) -> Option<String> {
    let url = base.join(href).ok()?;
    if url.origin() != base.origin() || url.query().is_some() {
        return None;
    }
    let rest = url.path().strip_prefix(base.path())?;
    let (segment, slash) = match rest.strip_suffix('/') {
        Some(folder) => (folder, "/"),
        None => (rest, ""),
    };
    let segment = percent::decode(segment);
    let good = !segment.is_empty() && !segment.contains('/') && !matches!(segment.as_str(), "." | "..");
    good.then(|| format!("{segment}{slash}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_directly_below_are_followed() {
        let base = Url::parse("http://host/maven/org/").unwrap();
        for (href, expected) in [
            ("example/", Some("example/")),
            ("./a.jar", Some("a.jar")),
            ("/maven/org/b%2B1.jar", Some("b+1.jar")),
            ("http://host/maven/org/c/", Some("c/")),
            ("../", None),
            ("?C=N;O=D", None),
            ("/", None),
            ("http://other/maven/org/d.jar", None),
            ("a/b.jar", None),
            ("a%2Fb.jar", None),
            ("", None),
        ] {
            assert_eq!(name(&base, href).as_deref(), expected, "{href}");
        }
    }
}
