//! Reads of a group. A file comes from the first member that has it, and the metadata of all
//! members is merged. The host decides which members may serve a name. If an upstream's document
//! has names that the upstream must not list, this module removes them.

use crate::answer::{document_response, missing};
use crate::index::{self, IndexDocument};
use crate::layout::{METADATA, PathTarget, join};
use crate::metadata::{MavenMetadata, MavenPlugin, SnapshotFile};
use crate::version::MavenVersion;
use crate::{archetypes, hosted, proxy, sums};
use packhouse_sdk::{Context, Failure, Repository, Request, Response};

/// Serves a read from the members.
pub(crate) fn get(cx: &Context, request: &Request, target: &PathTarget) -> Result<Response, Failure> {
    match target {
        // A list of one member's groups would stop clients from requesting the groups of other
        // members.
        PathTarget::Folder(_) | PathTarget::Prefixes => Err(missing(&target.subject())),
        PathTarget::Metadata(folder) => {
            let document = merged(cx, folder)?.ok_or_else(|| missing(&join(folder, METADATA)))?;
            document_response(cx, document, "text/xml")
        }
        PathTarget::Checksum(of, algorithm) => match &**of {
            PathTarget::Metadata(folder) => {
                let document = merged(cx, folder)?.ok_or_else(|| missing(&of.subject()))?;
                Ok(Response::text(sums::of(cx, &document.bytes, *algorithm)?).revalidate())
            }
            PathTarget::File(file) if file.path == archetypes::PATH => {
                let catalogue = archetypes::merged(cx, request)?.ok_or_else(|| missing(archetypes::PATH))?;
                Ok(Response::text(catalogue.digest(algorithm.name())?.hex()).revalidate())
            }
            _ => first(cx, request, target),
        },
        PathTarget::File(file) if file.path == archetypes::PATH => {
            let catalogue = archetypes::merged(cx, request)?.ok_or_else(|| missing(archetypes::PATH))?;
            Ok(Response::blob(catalogue).content_type("text/xml").revalidate())
        }
        PathTarget::File(_) => first(cx, request, target),
    }
}

/// The response of the first member that has the target.
fn first(cx: &Context, request: &Request, target: &PathTarget) -> Result<Response, Failure> {
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

/// Merges the metadata of a folder from all members. If only one member has a document, returns it
/// unchanged.
fn merged(cx: &Context, folder: &str) -> Result<Option<IndexDocument>, Failure> {
    // Documents of hosted members come first, and the first plugin with a prefix wins. A plugin of
    // an upstream therefore cannot displace a published one.
    let mut all: Vec<IndexDocument> = Vec::new();
    for member in cx.hosted()? {
        all.extend(index::metadata(member, folder)?);
    }
    let mut left_out = cx.left_out();
    for member in cx.proxies()? {
        all.extend(left_out.unless_failed(member, upstream_document(cx, member, folder))?);
    }
    let all = left_out.or_failure(Some(all).filter(|all| !all.is_empty()))?;
    let mut all = all.unwrap_or_default();
    if all.len() < 2 {
        return Ok(all.pop());
    }
    let modified = all.iter().map(|document| document.modified).max().unwrap_or_default();
    let read: Vec<MavenMetadata> =
        all.iter().filter_map(|document| MavenMetadata::read_upstream(&document.bytes).ok()).collect();
    let mut plugins: Vec<MavenPlugin> = Vec::new();
    for plugin in read.iter().flat_map(|metadata| &metadata.plugins) {
        if plugins.iter().all(|known| known.prefix != plugin.prefix) {
            plugins.push(plugin.clone());
        }
    }
    let merged = MavenMetadata { plugins, ..read.into_iter().reduce(merge).unwrap_or_default() };
    Ok(Some(IndexDocument { bytes: merged.write().into_bytes(), modified }))
}

/// Metadata of a folder from an upstream, without plugins that the upstream must not list.
fn upstream_document(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
) -> Result<Option<IndexDocument>, Failure> {
    let Some(document) = proxy::document(cx, proxy, folder)? else { return Ok(None) };
    let Ok(mut metadata) = MavenMetadata::read_upstream(&document.bytes) else { return Ok(Some(document)) };
    let group = folder.replace('/', ".");
    let name = |plugin: &MavenPlugin| format!("{group}:{}", plugin.artifact);
    let names: Vec<String> = metadata.plugins.iter().map(name).collect();
    let withheld = proxy.withheld(&names)?;
    if withheld.is_empty() {
        return Ok(Some(document));
    }
    metadata.plugins.retain(|plugin| !withheld.contains(&name(plugin)));
    Ok(Some(IndexDocument { bytes: metadata.write().into_bytes(), ..document }))
}

/// Merges two documents: all versions in order, and for a snapshot the newest build of each file.
fn merge(one: MavenMetadata, other: MavenMetadata) -> MavenMetadata {
    let (mut newer, older) = if other.updated > one.updated { (other, one) } else { (one, other) };
    newer.group = newer.group.or(older.group);
    newer.artifact = newer.artifact.or(older.artifact);
    newer.files = newest_files(newer.files, older.files);
    if newer.versions.is_empty() && older.versions.is_empty() {
        return newer;
    }
    let texts = newer.versions.iter().chain(&older.versions);
    let mut versions: Vec<MavenVersion> = texts.map(|text| MavenVersion::new(text)).collect();
    versions.sort_unstable();
    newer.release =
        versions.iter().rev().find(|version| !version.is_snapshot()).cloned().map(MavenVersion::into_text);
    newer.latest = versions.last().cloned().map(MavenVersion::into_text);
    newer.versions = versions.into_iter().map(MavenVersion::into_text).collect();
    newer.versions.dedup();
    newer
}

/// Returns the file that was updated last for each classifier and extension. If two files have the
/// same time, the file of `newer` wins.
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

    fn document(versions: &[&str], updated: &str) -> MavenMetadata {
        MavenMetadata {
            versions: versions.iter().map(|&version| version.into()).collect(),
            updated: Some(updated.into()),
            ..MavenMetadata::default()
        }
    }

    #[test]
    fn merged_documents_list_all_versions_in_order() {
        let merged = merge(document(&["1.0", "1.10"], "2"), document(&["1.9", "1.0", "2.0-SNAPSHOT"], "3"));
        assert_eq!(merged.versions, ["1.0", "1.9", "1.10", "2.0-SNAPSHOT"]);
        assert_eq!(
            (merged.release.as_deref(), merged.latest.as_deref()),
            (Some("1.10"), Some("2.0-SNAPSHOT"))
        );
        assert_eq!(merged.updated.as_deref(), Some("3"));
    }

    #[test]
    fn merged_snapshots_have_the_newest_build_of_each_file() {
        let file = |classifier: &str, value: &str, updated: &str| SnapshotFile {
            classifier: classifier.into(),
            extension: "jar".into(),
            value: value.into(),
            updated: updated.into(),
        };
        let snapshot = |files: &[SnapshotFile], updated: &str| MavenMetadata {
            version: Some("1-SNAPSHOT".into()),
            files: files.to_vec(),
            updated: Some(updated.into()),
            ..MavenMetadata::default()
        };
        let one = snapshot(&[file("", "1-a-1", "1"), file("linux", "1-a-1", "1")], "1");
        let two = snapshot(&[file("", "1-b-2", "2"), file("windows", "1-b-2", "2")], "2");
        let expected = [file("", "1-b-2", "2"), file("windows", "1-b-2", "2"), file("linux", "1-a-1", "1")];
        assert_eq!(merge(one.clone(), two.clone()).files, expected);
        assert_eq!(merge(two, one).files, expected);
    }
}
