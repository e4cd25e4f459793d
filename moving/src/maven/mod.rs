//! Maven repositories: a tree of files, of which checksums and `maven-metadata.xml` are made anew by whoever serves them.

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
use crate::export::{self, Exported};
use crate::fault::Fault;
use crate::origin::Origin;
use crate::percent;
use crate::report::{Line, Outcome};
use crate::stream::measure;
use crate::target::{Parcel, Run, Target, published, sized};
use crate::{artifactory, nexus};

use file::{CHECKSUMS, MavenFile, is_checksum};

/// Bytes of a checksum file.
const MOST_OF_A_SUM: usize = 64 << 10;
/// Files that are found and not yet looked at.
const WAITING: usize = 256;

/// Where a tree is read from.
#[derive(Clone, Debug)]
pub(crate) enum MavenSource {
    /// A folder, with checksums beside the files where somebody put them.
    Tree(PathBuf),
    /// A server that lists its folders as pages or as Packhouse's JSON.
    Pages(Arc<Client>),
    /// The same of which only these artifacts are wanted, on a server that may list nothing.
    Named(Arc<Client>, Vec<String>),
    /// A repository in a blob store of Nexus 3.
    BlobStore(PathBuf, String),
    /// A repository of Nexus 3.
    Nexus(nexus::Repository),
    /// A repository of Artifactory.
    Artifactory(artifactory::Repository),
    /// What `packhouse export` wrote.
    Export(PathBuf, Arc<Vec<Exported>>),
}

/// Moves a tree.
pub(crate) async fn run(run: &Run, source: MavenSource) -> Result<(), Fault> {
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
        // What was found until then is moved, however the search ended.
        Either::Left((walked, moving)) => moving.await.and(walked),
        // Nobody takes more: the search is given up.
        Either::Right((Err(fault), _)) => Err(fault),
        Either::Right((Ok(()), walk)) => walk.await,
    }
}

/// The files as they were found, those of a folder together.
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

/// Moves the files of a folder, the newest first: a version came into the world with the oldest of its files, and what was said last holds.
async fn all(run: &Run, mut folder: Vec<MavenFile>) -> Result<(), Fault> {
    folder.sort_by(|one, other| (other.published, &other.path).cmp(&(one.published, &one.path)));
    for file in folder {
        one(run, file).await?;
    }
    Ok(())
}

/// Why a file is left out.
fn left_out(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        _ if name.starts_with("maven-metadata") && name.ends_with(".xml") => {
            Some("the server makes it from what it holds")
        }
        _ if path == export::NAME => Some("it is an export's list"),
        "_remote.repositories" | "resolver-status.properties" => Some("it is a client's own"),
        _ if name.ends_with(".lastUpdated") => Some("it is a client's own"),
        _ if path.split('/').any(|segment| segment.starts_with('.')) => Some("it is no artifact"),
        _ => None,
    }
}

/// `group:artifact` and version, where the path is shaped like Maven's layout.
fn coordinates(path: &str) -> Option<(String, String)> {
    let (folder, name) = path.rsplit_once('/')?;
    let (folder, version) = folder.rsplit_once('/')?;
    let (group, artifact) = folder.rsplit_once('/')?;
    name.starts_with(&format!("{artifact}-"))
        .then(|| (format!("{}:{artifact}", group.replace('/', ".")), version.to_owned()))
}

/// Whether the newest bytes of a path stand: a snapshot's without a timestamp.
fn is_moving(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("-SNAPSHOT"))
}

async fn one(run: &Run, file: MavenFile) -> Result<(), Fault> {
    if is_checksum(&file.path) {
        return Ok(());
    }
    let (package, version) = coordinates(&file.path).unzip();
    if !run.wants(package.as_deref().unwrap_or_default()) {
        return Ok(());
    }
    let mut line = Line::file(package.as_deref().unwrap_or_default(), &file.path);
    line.version = version;
    if let Some(reason) = left_out(&file.path) {
        run.report.add(line.ended(Outcome::Skipped, reason));
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

async fn carry(run: &Run, path: &str, parcel: &mut Parcel) -> Result<Outcome, Fault> {
    if parcel.stated.is_empty() {
        parcel.stated = beside(&parcel.origin).await?;
    }
    let came = match &run.target {
        Target::Folder(folder) => {
            if !parcel.stated.is_empty()
                && let Some(came) = folder.holds(path, &parcel.stated).await?
            {
                note(parcel, came.sha256(), came.size);
                return Ok(Outcome::Present);
            }
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            parcel.line = parcel.line.clone().published(opened.modified);
            folder.take(path, opened, parcel.stated.clone(), parcel.size).await?
        }
        Target::Server(server) => {
            let url = server.url(&percent::path(path))?;
            if let Some(headers) = server.client.head(&url, "*/*").await? {
                let there = checksums(&headers);
                if is_the_same(parcel, &there).await? {
                    note(parcel, there.sha256, parcel.size.unwrap_or_default());
                    return Ok(Outcome::Present);
                }
                if !is_moving(path) {
                    return Err(Fault::Refused(
                        "another file of this name is there, and it is not replaced".to_owned(),
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
    note(parcel, came.sha256(), came.size);
    Ok(Outcome::Moved)
}

fn note(parcel: &mut Parcel, sha256: Option<String>, size: u64) {
    parcel.line.sha256 = sha256;
    parcel.line.size = Some(size).filter(|size| *size > 0);
}

/// Whether what is there is the source's: by what is stated, or by reading it.
async fn is_the_same(parcel: &Parcel, there: &Digests) -> Result<bool, Fault> {
    if let Some(same) = parcel.stated.agree(there) {
        return Ok(same);
    }
    let came = measure(parcel.origin.open().await?, parcel.stated.clone(), parcel.size).await?;
    Ok(came.digests.agree(there).unwrap_or(false))
}

/// What a server says of a file in headers, as Nexus and Artifactory do too.
pub(crate) fn checksums(headers: &HeaderMap) -> Digests {
    let mut digests = Digests::default();
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        let value = headers.get(format!("x-checksum-{algorithm}")).and_then(|value| value.to_str().ok());
        digests.add(algorithm, value.unwrap_or_default());
    }
    digests
}

/// What the checksum files beside a file say. On a server one is asked for, in the order in which they are likely to be there.
async fn beside(origin: &Origin) -> Result<Digests, Fault> {
    let mut stated = Digests::default();
    for (ending, algorithm) in CHECKSUMS {
        let text = match origin {
            Origin::Url(client, url) => {
                let mut url = url.clone();
                url.set_path(&format!("{}{ending}", url.path()));
                match client.document(&url, "*/*").await {
                    Ok(document) => document.text(),
                    Err(Fault::Missing(_)) => continue,
                    Err(fault) => return Err(fault),
                }
            }
            Origin::Other(_) => break,
            Origin::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(ending);
                match Origin::File(name.into()).open().await {
                    Ok(opened) => String::from_utf8_lossy(&opened.gather(MOST_OF_A_SUM).await?).into_owned(),
                    Err(Fault::Missing(_)) => continue,
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
    fn paths_tell_what_they_are() {
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
