//! A tree on a server that lists its folders: as pages with links, as most do, or as Packhouse's own JSON.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use url::Url;

use super::file::{Found, MavenFile, hand_on, is_checksum};
use crate::client::{Client, Document, shown};
use crate::digests::Digests;
use crate::fault::Fault;
use crate::html;
use crate::origin::Origin;
use crate::percent;

/// Folders below one another.
const DEEPEST: usize = 64;
/// Pages of one folder.
const MOST_PAGES: usize = 100_000;

/// A page of a folder, as Packhouse answers it.
#[derive(Deserialize)]
struct Page {
    entries: Vec<Entry>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    kind: String,
    size: Option<u64>,
    modified: Option<i64>,
}

/// Finds every file below the server's address.
pub(super) async fn walk(client: Arc<Client>, found: Found) -> Result<(), Fault> {
    let mut folders = vec![(String::new(), 0)];
    let mut first = true;
    while let Some((folder, depth)) = folders.pop() {
        let listed = list(&client, &folder, &found).await;
        let below = match listed {
            Ok(below) => below,
            // A repository that holds nothing has no listing.
            Err(Fault::Missing(text)) if first => return Err(Fault::Refused(no_listing(&text))),
            Err(Fault::Missing(_)) => Vec::new(),
            Err(fault) => return Err(fault),
        };
        first = false;
        if depth < DEEPEST {
            folders.extend(below.into_iter().rev().map(|folder| (folder, depth + 1)));
        }
    }
    Ok(())
}

fn no_listing(text: &str) -> String {
    format!("{text}; a tree is moved from a server that lists its folders, or from a folder on this machine")
}

/// Hands on the files of a folder, and answers the folders in it.
async fn list(client: &Arc<Client>, folder: &str, found: &Found) -> Result<Vec<String>, Fault> {
    let (mut below, mut after) = (Vec::new(), None::<String>);
    for _ in 0..MOST_PAGES {
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
                    hand_on_file(client, path, None, None, found).await?;
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
                    hand_on_file(client, path, entry.size, at, found).await?;
                }
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(below),
        }
    }
    Err(Fault::Refused(format!("the folder {folder} of {} has no end", shown(client.base()))))
}

async fn hand_on_file(
    client: &Arc<Client>,
    path: String,
    size: Option<u64>,
    published: Option<Timestamp>,
    found: &Found,
) -> Result<(), Fault> {
    if is_checksum(&path) {
        return Ok(());
    }
    let origin = Origin::Url(Arc::clone(client), client.url(&percent::path(&path))?);
    hand_on(found, MavenFile { path, origin, stated: Digests::default(), size, published }).await;
    Ok(())
}

fn page(document: &Document) -> Option<Page> {
    if document.media_type() != "application/json" {
        return None;
    }
    serde_json::from_slice(&document.bytes).ok()
}

/// The names in a folder that a page links to, folders with a slash at their ends: what lies directly below the page and nowhere else.
fn names(document: &Document) -> BTreeSet<String> {
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
    fn only_what_lies_below_is_followed() {
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
