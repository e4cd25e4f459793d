//! A group: its members in their order, metadata of all of them as one document.
//!
//! A name that a hosted member has published, or that a member claims, is looked for in hosted members alone: what an upstream
//! offers under the same name is another's.

use crate::index::{self, Document};
use crate::layout::{FilePath, METADATA, Target, join};
use crate::metadata::Metadata;
use crate::version::Version;
use crate::{fetch, proxy, records, sums};
use packhouse_sdk::{Context, Failure, Repository, Request, Response, fits};
use serde::Deserialize;

#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    claimed_names: Vec<String>,
}

/// Answers a read from the members.
pub(crate) fn get(cx: &Context, request: &Request, target: &Target) -> Result<Response, Failure> {
    match target {
        // A list of one member's groups would keep clients from asking for those of another.
        Target::Folder(_) | Target::Prefixes => Err(fetch::missing(&target.subject())),
        Target::Metadata(folder) => {
            let document = merged(cx, folder)?.ok_or_else(|| fetch::missing(&join(folder, METADATA)))?;
            fetch::made(cx, document, "text/xml")
        }
        Target::Checksum(of, algorithm) => match &**of {
            Target::Metadata(folder) => {
                let document = merged(cx, folder)?.ok_or_else(|| fetch::missing(&of.subject()))?;
                Ok(Response::text(sums::of(cx, &document.bytes, *algorithm)?).revalidate())
            }
            _ => first(cx, request, target),
        },
        Target::File(_) => first(cx, request, target),
    }
}

/// The answer of the first member that has it. A member that fails is not passed over: a later one may have other bytes.
fn first(cx: &Context, request: &Request, target: &Target) -> Result<Response, Failure> {
    for member in visible(cx, &name_of(target))? {
        let answer = match is_proxy(member) {
            true => proxy::get(cx, member, request, target),
            false => fetch::hosted(cx, member, request, target),
        };
        match answer {
            Err(failure) if failure.status == 404 => {}
            answer => return answer,
        }
    }
    Err(fetch::missing(&target.subject()))
}

/// `group:artifact` of a file that is shaped like one; else nothing.
fn name_of(target: &Target) -> String {
    match target {
        Target::File(FilePath { item: Some(item), .. }) => item.name(),
        Target::Checksum(of, _) => name_of(of),
        _ => String::new(),
    }
}

fn is_proxy(member: &Repository) -> bool {
    member.kind() == "proxy"
}

/// The members in which this name is looked for.
fn visible<'a>(cx: &'a Context, name: &str) -> Result<Vec<&'a Repository>, Failure> {
    let members = cx.others();
    let hides = !name.is_empty() && is_own(cx, name)?;
    Ok(members.iter().filter(|member| !(hides && is_proxy(member))).collect())
}

/// Whether a hosted member has published this name, or the group or one of its members claims it.
fn is_own(cx: &Context, name: &str) -> Result<bool, Failure> {
    let group = cx.target()?;
    for repository in cx.others().iter().chain([group]) {
        let settings: Settings = repository.settings()?;
        if settings.claimed_names.iter().any(|pattern| fits(pattern, name)) {
            return Ok(true);
        }
    }
    let Some((group, artifact)) = name.split_once(':') else { return Ok(false) };
    let versions = records::versions(&format!("{}/{artifact}", group.replace('.', "/")));
    for member in cx.others().iter().filter(|member| !is_proxy(member)) {
        if member.keys(versions.as_str()).page(1).next().transpose()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What all visible members say of a folder, as one document. What one alone says stays as it is.
fn merged(cx: &Context, folder: &str) -> Result<Option<Document>, Failure> {
    let mut all: Vec<Document> = Vec::new();
    for member in visible(cx, &artifact_of(folder))? {
        let document = match is_proxy(member) {
            true => proxy::document(cx, member, folder)?,
            false => index::metadata(member, folder)?,
        };
        all.extend(document);
    }
    if all.len() < 2 {
        return Ok(all.pop());
    }
    let modified = all.iter().map(|document| document.modified).max().unwrap_or_default();
    let read = all.iter().filter_map(|document| Metadata::read(&document.bytes).ok());
    let merged = read.reduce(merge).unwrap_or_default();
    Ok(Some(Document { bytes: merged.write().into_bytes(), modified }))
}

/// The name that a folder's document is about, be it an artifact's or a snapshot's.
fn artifact_of(folder: &str) -> String {
    let folder = match folder.rsplit_once('/') {
        Some((artifact, version)) if crate::version::is_snapshot(version) => artifact,
        _ => folder,
    };
    let (group, artifact) = folder.rsplit_once('/').unwrap_or_default();
    format!("{}:{artifact}", group.replace('/', "."))
}

/// Both documents as one: all versions in their order, and of a snapshot the builds of whichever is newer.
fn merge(one: Metadata, other: Metadata) -> Metadata {
    let (mut newer, older) = if other.updated > one.updated { (other, one) } else { (one, other) };
    newer.group = newer.group.or(older.group);
    newer.artifact = newer.artifact.or(older.artifact);
    for plugin in older.plugins {
        if newer.plugins.iter().all(|known| known.prefix != plugin.prefix) {
            newer.plugins.push(plugin);
        }
    }
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
    fn names_are_claimed_by_patterns() {
        for (pattern, name, right) in [
            ("org.example:*", "org.example:lib", true),
            ("org.example*", "org.example.sub:lib", true),
            ("org.example:lib", "org.example:lib2", false),
            ("org.example:*", "org.examples:lib", false),
        ] {
            assert_eq!(fits(pattern, name), right, "{pattern} {name}");
        }
    }

    #[test]
    fn folders_name_artifacts() {
        assert_eq!(artifact_of("org/example/lib"), "org.example:lib");
        assert_eq!(artifact_of("org/example/lib/1.0-SNAPSHOT"), "org.example:lib");
    }
}
