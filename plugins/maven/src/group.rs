//! A group: its members in their order, metadata of all of them as one document. Which members may serve a name is the host's to
//! say; what an upstream lists of names that are ours is left out here.

use crate::answer::{made, missing};
use crate::index::{self, Document};
use crate::layout::{METADATA, Target, join};
use crate::metadata::{Metadata, Plugin, SnapshotFile};
use crate::version::Version;
use crate::{archetypes, hosted, proxy, sums};
use packhouse_sdk::{Context, Failure, Repository, Request, Response};

/// Answers a read from the members.
pub(crate) fn get(cx: &Context, request: &Request, target: &Target) -> Result<Response, Failure> {
    match target {
        // A list of one member's groups would keep clients from asking for those of another.
        Target::Folder(_) | Target::Prefixes => Err(missing(&target.subject())),
        Target::Metadata(folder) => {
            let document = merged(cx, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            made(cx, document, "text/xml")
        }
        Target::Checksum(of, algorithm) => match &**of {
            Target::Metadata(folder) => {
                let document = merged(cx, folder)?.ok_or_else(|| missing(&of.subject()))?;
                Ok(Response::text(sums::of(cx, &document.bytes, *algorithm)?).revalidate())
            }
            Target::File(file) if file.path == archetypes::PATH => {
                let catalogue = archetypes::merged(cx, request)?.ok_or_else(|| missing(archetypes::PATH))?;
                Ok(Response::text(catalogue.digest(algorithm.name())?.hex()).revalidate())
            }
            _ => first(cx, request, target),
        },
        Target::File(file) if file.path == archetypes::PATH => {
            let catalogue = archetypes::merged(cx, request)?.ok_or_else(|| missing(archetypes::PATH))?;
            Ok(Response::blob(catalogue).content_type("text/xml").revalidate())
        }
        Target::File(_) => first(cx, request, target),
    }
}

/// The answer of the first member that has it.
fn first(cx: &Context, request: &Request, target: &Target) -> Result<Response, Failure> {
    let found = cx.first(|member| {
        let answer = if member.is_proxy() {
            proxy::get(cx, member, request, target)
        } else {
            hosted::get(cx, member, request, target)
        };
        match answer {
            Err(failure) if failure.status == 404 => Ok(None),
            answer => answer.map(Some),
        }
    })?;
    found.ok_or_else(|| missing(&target.subject()))
}

/// What all members say of a folder, as one document. What one alone says stays as it is.
fn merged(cx: &Context, folder: &str) -> Result<Option<Document>, Failure> {
    // Of a plugin's prefix the first counts: what is published here is not displaced by an upstream's.
    let mut all: Vec<Document> = Vec::new();
    for member in cx.hosted()? {
        all.extend(index::metadata(member, folder)?);
    }
    let mut left_out = cx.left_out();
    for member in cx.proxies()? {
        all.extend(left_out.unless_failed(member, foreign(cx, member, folder))?);
    }
    let all = left_out.or_failure(Some(all).filter(|all| !all.is_empty()))?;
    let mut all = all.unwrap_or_default();
    if all.len() < 2 {
        return Ok(all.pop());
    }
    let modified = all.iter().map(|document| document.modified).max().unwrap_or_default();
    let read: Vec<Metadata> =
        all.iter().filter_map(|document| Metadata::read_foreign(&document.bytes).ok()).collect();
    let mut plugins: Vec<Plugin> = Vec::new();
    for plugin in read.iter().flat_map(|metadata| &metadata.plugins) {
        if plugins.iter().all(|known| known.prefix != plugin.prefix) {
            plugins.push(plugin.clone());
        }
    }
    let merged = Metadata { plugins, ..read.into_iter().reduce(merge).unwrap_or_default() };
    Ok(Some(Document { bytes: merged.write().into_bytes(), modified }))
}

/// What an upstream says of a folder, without plugins of a group that are not looked for there.
fn foreign(cx: &Context, proxy: &Repository, folder: &str) -> Result<Option<Document>, Failure> {
    let Some(document) = proxy::document(cx, proxy, folder)? else { return Ok(None) };
    let Ok(mut metadata) = Metadata::read_foreign(&document.bytes) else { return Ok(Some(document)) };
    let group = folder.replace('/', ".");
    let name = |plugin: &Plugin| format!("{group}:{}", plugin.artifact);
    let names: Vec<String> = metadata.plugins.iter().map(name).collect();
    let withheld = proxy.withheld(&names)?;
    if withheld.is_empty() {
        return Ok(Some(document));
    }
    metadata.plugins.retain(|plugin| !withheld.contains(&name(plugin)));
    Ok(Some(Document { bytes: metadata.write().into_bytes(), ..document }))
}

/// Both documents as one: all versions in their order, and of a snapshot the newest build of each file.
fn merge(one: Metadata, other: Metadata) -> Metadata {
    let (mut newer, older) = if other.updated > one.updated { (other, one) } else { (one, other) };
    newer.group = newer.group.or(older.group);
    newer.artifact = newer.artifact.or(older.artifact);
    newer.files = newest_files(newer.files, older.files);
    if newer.versions.is_empty() && older.versions.is_empty() {
        return newer;
    }
    let texts = newer.versions.iter().chain(&older.versions);
    let mut versions: Vec<Version> = texts.map(|text| Version::new(text)).collect();
    versions.sort_unstable();
    newer.release =
        versions.iter().rev().find(|version| !version.is_snapshot()).cloned().map(Version::into_text);
    newer.latest = versions.last().cloned().map(Version::into_text);
    newer.versions = versions.into_iter().map(Version::into_text).collect();
    newer.versions.dedup();
    newer
}

/// Of each classifier and extension the file that was updated last; of two at one time that of `newer`.
fn newest_files(newer: Vec<SnapshotFile>, older: Vec<SnapshotFile>) -> Vec<SnapshotFile> {
    let mut files = newer;
    for file in older {
        let is_same = |known: &&mut SnapshotFile| {
            (&known.classifier, &known.extension) == (&file.classifier, &file.extension)
        };
        match files.iter_mut().find(is_same) {
            Some(known) if known.updated < file.updated => *known = file,
            Some(_) => {}
            None => files.push(file),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(versions: &[&str], updated: &str) -> Metadata {
        Metadata {
            versions: versions.iter().map(|&version| version.into()).collect(),
            updated: Some(updated.into()),
            ..Metadata::default()
        }
    }

    #[test]
    fn documents_are_one_with_all_versions_in_their_order() {
        let merged = merge(document(&["1.0", "1.10"], "2"), document(&["1.9", "1.0", "2.0-SNAPSHOT"], "3"));
        assert_eq!(merged.versions, ["1.0", "1.9", "1.10", "2.0-SNAPSHOT"]);
        assert_eq!(
            (merged.release.as_deref(), merged.latest.as_deref()),
            (Some("1.10"), Some("2.0-SNAPSHOT"))
        );
        assert_eq!(merged.updated.as_deref(), Some("3"));
    }

    #[test]
    fn of_a_snapshot_each_file_has_its_newest_build() {
        let file = |classifier: &str, value: &str, updated: &str| SnapshotFile {
            classifier: classifier.into(),
            extension: "jar".into(),
            value: value.into(),
            updated: updated.into(),
        };
        let snapshot = |files: &[SnapshotFile], updated: &str| Metadata {
            version: Some("1-SNAPSHOT".into()),
            files: files.to_vec(),
            updated: Some(updated.into()),
            ..Metadata::default()
        };
        let one = snapshot(&[file("", "1-a-1", "1"), file("linux", "1-a-1", "1")], "1");
        let two = snapshot(&[file("", "1-b-2", "2"), file("windows", "1-b-2", "2")], "2");
        let expected = [file("", "1-b-2", "2"), file("windows", "1-b-2", "2"), file("linux", "1-a-1", "1")];
        assert_eq!(merge(one.clone(), two.clone()).files, expected);
        assert_eq!(merge(two, one).files, expected);
    }
}
