//! Maven repositories: a tree of files. Checksums and `maven-metadata.xml` are not moved, because
//! the target generates them.

mod blob_store;
pub(crate) mod file;
mod named;
mod pages;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::{Either, select};
use futures::stream;
use reqwest::header::HeaderMap;
use reqwest::{Body, Method};
use tokio::sync::mpsc::{self, Receiver};

use crate::client::Client;
use crate::digests::Digests;
use crate::error::MoveError;
use crate::export::{self, ExportedFile};
use crate::origin::Origin;
use crate::percent;
use crate::report::{MoveOutcome, ReportLine};
use crate::stream::measure;
use crate::target::{MoveRun, MoveTarget, Parcel, published, sized};
use crate::{artifactory, nexus};

use file::{CHECKSUMS, MavenFile, is_checksum};

/// Maximum size of a checksum file, in bytes.
const MAX_CHECKSUM_BYTES: usize = 64 << 10;
/// Capacity of the channel for found files.
const WAITING: usize = 256;

/// Source of a Maven tree.
#[derive(Clone, Debug)]
pub(crate) enum MavenSource {
    /// A folder, which may contain checksum files.
    Tree(PathBuf),
    /// A server that lists its folders, as HTML pages or as Packhouse's JSON.
    Pages(Arc<Client>),
    /// Only these artifacts of a server. The server need not list its folders.
    Named(Arc<Client>, Vec<String>),
    /// A repository in a blob store of Nexus 3.
    BlobStore(PathBuf, String),
    /// A repository in Nexus 3.
    Nexus(nexus::Repository),
    /// A repository in Artifactory.
    Artifactory(artifactory::Repository),
    /// An export that `packhouse export` wrote.
    Export(PathBuf, Arc<Vec<ExportedFile>>),
}

/// Moves a tree.
pub(crate) async fn run(run: &MoveRun, source: MavenSource) -> Result<(), MoveError> {
    let (found, files) = mpsc::channel(WAITING);
    let walk = async move {
        match source {
            MavenSource::Tree(root) => tree::walk(root, found).await,
            MavenSource::Export(root, listed) => tree::listed(root, &listed, found).await,
            MavenSource::Pages(client) => pages::walk(client, found).await,
            MavenSource::Named(client, names) => named::walk(client, &names, found).await,
            MavenSource::BlobStore(root, name) => blob_store::walk(root, name, found).await,
            MavenSource::Nexus(repository) => repository.files(found).await,
            MavenSource::Artifactory(repository) => repository.files(found).await,
        }
    };
    let moving = run.each(folders(files), |folder| all(run, folder));
    match select(std::pin::pin!(walk), std::pin::pin!(moving)).await {
        // Files that were found are moved even if the search failed.
        Either::Left((walked, moving)) => moving.await.and(walked),
        // The transfer has failed, so the search is dropped.
        Either::Right((Err(fault), _)) => Err(fault),
        Either::Right((Ok(()), walk)) => walk.await,
    }
}

/// Groups consecutive found files by folder.
fn folders(files: Receiver<MavenFile>) -> impl futures::Stream<Item = Vec<MavenFile>> {
    stream::unfold((files, None::<MavenFile>), |(mut files, first)| async {
        let first = match first {
            Some(first) => first,
            None => files.recv().await?,
        };
        let mut folder = vec![first];
        while let Some(file) = files.recv().await {
            if folder.first().is_some_and(|first| parent(&first.path) != parent(&file.path)) {
                return Some((folder, (files, Some(file))));
            }
            folder.push(file);
        }
        Some((folder, (files, None)))
    })
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Moves the files of a folder, the newest first. The last upload sets the time of a version at the
/// target, and this must be the time of its oldest file.
async fn all(run: &MoveRun, mut folder: Vec<MavenFile>) -> Result<(), MoveError> {
    folder.sort_by(|one, other| (other.published, &other.path).cmp(&(one.published, &one.path)));
    for file in folder {
        one(run, file).await?;
    }
    Ok(())
}

/// The reason why a file is left out, if it is.
fn left_out(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        _ if name.starts_with("maven-metadata") && name.ends_with(".xml") => {
            Some("the server generates this file")
        }
        _ if path == export::NAME => Some("this file is the list of an export"),
        "_remote.repositories" | "resolver-status.properties" => {
            Some("this file is for the local use of a client")
        }
        _ if name.ends_with(".lastUpdated") => Some("this file is for the local use of a client"),
        _ if path.split('/').any(|segment| segment.starts_with('.')) => Some("this file is not an artifact"),
        _ => None,
    }
}

/// The package (`group:artifact`) and the version of a file, if the path has Maven's layout.
fn coordinates(path: &str) -> Option<(String, String)> {
    let (folder, name) = path.rsplit_once('/')?;
    let (folder, version) = folder.rsplit_once('/')?;
    let (group, artifact) = folder.rsplit_once('/')?;
    name.starts_with(&format!("{artifact}-"))
        .then(|| (format!("{}:{artifact}", group.replace('/', ".")), version.to_owned()))
}

/// Reports whether a file may be replaced: a snapshot without a timestamp.
fn is_moving(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("-SNAPSHOT"))
}

async fn one(run: &MoveRun, file: MavenFile) -> Result<(), MoveError> {
    if is_checksum(&file.path) {
        return Ok(());
    }
    let (package, version) = coordinates(&file.path).unzip();
    if !run.wants(package.as_deref().unwrap_or_default()) {
        return Ok(());
    }
    let mut line = ReportLine::file(package.as_deref().unwrap_or_default(), &file.path);
    line.version = version;
    if let Some(reason) = left_out(&file.path) {
        run.report.add(line.ended(MoveOutcome::Skipped, reason));
        return Ok(());
    }
    let mut parcel = Parcel {
        line: line.published(file.published),
        origin: file.origin.clone(),
        stated: file.stated.clone(),
        size: file.size,
        published: file.published,
    };
    let result = carry(run, &file.path, &mut parcel).await;
    run.ended(parcel.line, result)
}

async fn carry(run: &MoveRun, path: &str, parcel: &mut Parcel) -> Result<MoveOutcome, MoveError> {
    if parcel.stated.is_empty() {
        parcel.stated = beside(&parcel.origin).await?;
    }
    let measured = match &run.target {
        MoveTarget::Folder(folder) => {
            if !parcel.stated.is_empty()
                && let Some(measured) = folder.holds(path, &parcel.stated).await?
            {
                record(parcel, measured.sha256(), measured.size);
                return Ok(MoveOutcome::Present);
            }
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            parcel.line = parcel.line.clone().published(opened.modified);
            folder.take(path, opened, parcel.stated.clone(), parcel.size).await?
        }
        MoveTarget::Server(server) => {
            let url = server.url(&percent::path(path))?;
            if let Some(headers) = server.client.head(&url, "*/*").await? {
                let there = checksums(&headers);
                if is_the_same(parcel, &there).await? {
                    record(parcel, there.sha256, parcel.size.unwrap_or_default());
                    return Ok(MoveOutcome::Present);
                }
                if !is_moving(path) {
                    return Err(MoveError::Refused(
                        "the target has another file of this name, which is not replaced".to_owned(),
                    ));
                }
            }
            run.send(parcel, |body, length, at| {
                published(sized(server.client.request(Method::PUT, &url), length), at)
                    .body(Body::wrap_stream(body))
            })
            .await?
        }
    };
    record(parcel, measured.sha256(), measured.size);
    Ok(MoveOutcome::Moved)
}

fn record(parcel: &mut Parcel, sha256: Option<String>, size: u64) {
    parcel.line.sha256 = sha256;
    parcel.line.size = Some(size).filter(|size| *size > 0);
}

/// Reports whether the target's file equals the source's file. Compares stated digests, or reads
/// the source if they have no algorithm in common.
async fn is_the_same(parcel: &Parcel, there: &Digests) -> Result<bool, MoveError> {
    if let Some(same) = parcel.stated.agree(there) {
        return Ok(same);
    }
    let measured = measure(parcel.origin.open().await?, parcel.stated.clone(), parcel.size).await?;
    Ok(measured.digests.agree(there).unwrap_or(false))
}

/// Digests from a server's `x-checksum-…` headers. Nexus and Artifactory send them too.
pub(crate) fn checksums(headers: &HeaderMap) -> Digests {
    let mut digests = Digests::default();
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        let value = headers.get(format!("x-checksum-{algorithm}")).and_then(|value| value.to_str().ok());
        digests.add(algorithm, value.unwrap_or_default());
    }
    digests
}

/// Digests from the checksum files next to a file. On a server only the first existing one is read;
/// the most common kinds are tried first.
async fn beside(origin: &Origin) -> Result<Digests, MoveError> {
    let mut stated = Digests::default();
    for (ending, algorithm) in CHECKSUMS {
        let text = match origin {
            Origin::Url(client, url) => {
                let mut url = url.clone();
                url.set_path(&format!("{}{ending}", url.path()));
                match client.document(&url, "*/*").await {
                    Ok(document) => document.text(),
                    Err(MoveError::Missing(_)) => continue,
                    Err(fault) => return Err(fault),
                }
            }
            Origin::Other(_) => break,
            Origin::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(ending);
                match Origin::File(name.into()).open().await {
                    Ok(opened) => {
                        String::from_utf8_lossy(&opened.gather(MAX_CHECKSUM_BYTES).await?).into_owned()
                    }
                    Err(MoveError::Missing(_)) => continue,
                    Err(fault) => return Err(fault),
                }
            }
        };
        stated.add_text(algorithm, &text);
        if !stated.is_empty() && matches!(origin, Origin::Url(..)) {
            break;
        }
    }
    Ok(stated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_classified() {
        let path = "org/example/lib/1.0-SNAPSHOT/lib-1.0-20260101.010101-1.jar";
        assert_eq!(coordinates(path), Some(("org.example:lib".to_owned(), "1.0-SNAPSHOT".to_owned())));
        assert!(!is_moving(path) && is_moving("o/l/1-SNAPSHOT/l-1-SNAPSHOT.jar"));
        assert!(is_checksum("a.jar.sha1") && is_checksum("a.jar.asc.md5") && !is_checksum("a.jar.asc"));
        for (path, out) in [
            ("o/l/maven-metadata.xml", true),
            ("o/l/maven-metadata-central.xml", true),
            ("o/l/1/_remote.repositories", true),
            (".index/nexus.gz", true),
            ("o/l/1/l-1.jar.asc", false),
            ("archetype-catalog.xml", false),
        ] {
            assert_eq!(left_out(path).is_some(), out, "{path}");
        }
    }
}
