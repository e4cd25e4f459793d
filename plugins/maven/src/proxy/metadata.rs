//! The upstream's `maven-metadata.xml`, without versions that must not be offered.
//!
//! If the upstream no longer lists a version that it once listed, the plugin marks the version as
//! withdrawn. The version stays in the document only if the host allows it. The plugin also leaves
//! out versions that are too young. To find them, it requests the POMs of the newest versions. If a
//! POM is too young, the host answers with 404, as for any other file.

use super::{FilePath, encoded, is_page, listed_fetch};
use crate::index::IndexDocument;
use crate::layout::{METADATA, join};
use crate::metadata::{self, BadMetadata, MavenMetadata};
use crate::version::{self, MavenVersion};
use packhouse_sdk::{
    Context, Expectation, Failure, Found, ReadAt, Release, ReleaseVerdict, Reply, Repository,
    Version as ListedVersion,
};

/// Largest document of an upstream, in bytes.
const LIMIT: u64 = 16 * 1024 * 1024;
/// Number of newest versions whose age the plugin checks. It assumes that older versions are old
/// enough.
const AGE_CHECKS: usize = 20;
/// Prefix of the records of the versions that an upstream has offered, with a mark on the versions
/// of its last document.
const OFFERED: &str = "u/";

/// The document of a folder; `None` if the upstream has none or refuses access.
pub(crate) fn document(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
) -> Result<Option<IndexDocument>, Failure> {
    let path = join(folder, METADATA);
    let reply = cx.upstream("GET", &encoded(&path)).limit(LIMIT).metadata().start(proxy)?;
    let bytes = match reply.look()? {
        Found::There(reply) => read(reply, folder)?,
        Found::Nothing => {
            withdraw(proxy, folder, &[])?;
            return Ok(None);
        }
        Found::Refused => return Ok(None),
    };
    let mut metadata = MavenMetadata::read_upstream(&bytes).map_err(|why| unusable(folder, &why))?;
    let package = package(folder);
    cx.log().left_out(&package, "versions", metadata.left_out);
    if metadata.versions.is_empty() || metadata.version.is_some() {
        return Ok(Some(IndexDocument { bytes, modified: 0 }));
    }
    let mut changed = metadata.left_out > 0;
    let vanished = withdraw(proxy, folder, &metadata.versions)?;
    // The age of withdrawn versions that stay offered is judged below, together with the age of all
    // other versions.
    let offered = not_withheld(proxy, &package, vanished, true)?;
    if !offered.is_empty() {
        metadata.versions.extend(offered);
        changed = true;
    }
    let listed = metadata.versions.len();
    metadata.versions = not_withheld(proxy, &package, std::mem::take(&mut metadata.versions), false)?;
    changed |= metadata.versions.len() < listed;
    if proxy.judge_release(&package, newest(&metadata))? != ReleaseVerdict::Offered {
        changed |= leave_out_young(cx, proxy, folder, &mut metadata)?;
    }
    if changed {
        name_newest(&mut metadata);
        return Ok(Some(IndexDocument { bytes: metadata.write().into_bytes(), modified: 0 }));
    }
    Ok(Some(IndexDocument { bytes, modified: 0 }))
}

/// Reads the document of a folder from a reply of the upstream.
fn read(reply: Reply, folder: &str) -> Result<Vec<u8>, Failure> {
    // An HTML page is not metadata. The plugin does not read its body, so that the host keeps the
    // cached document.
    if is_page(&reply.headers()?, &join(folder, METADATA)) {
        return Err(unusable(folder, &BadMetadata("it is an HTML page".to_owned())));
    }
    Ok(reply.body()?.read_all(LIMIT)?)
}

fn unusable(folder: &str, why: &BadMetadata) -> Failure {
    let BadMetadata(why) = why;
    Failure::unusable_upstream(format!("{why}, for {}", join(folder, METADATA)))
}

/// Marks versions that the upstream no longer offers as withdrawn, and removes the mark from
/// versions that it offers again. Returns all versions that the upstream offered once and does not
/// offer now.
fn withdraw(proxy: &Repository, folder: &str, offered: &[String]) -> Result<Vec<String>, Failure> {
    let key = format!("{OFFERED}{folder}");
    let before: Vec<(String, bool)> = proxy.get_json(&key)?.map(|entry| entry.value).unwrap_or_default();
    if before.is_empty() && offered.is_empty() {
        return Ok(Vec::new());
    }
    let gone = before.iter().filter(|(version, _)| !offered.contains(version));
    let now: Vec<(String, bool)> = offered
        .iter()
        .map(|version| (version.clone(), true))
        .chain(gone.clone().map(|(version, _)| (version.clone(), false)))
        .collect();
    if now != before {
        let mut change = proxy.begin()?;
        for (version, is_offered) in &now {
            let was_offered =
                before.iter().find(|(known, _)| known == version).is_none_or(|(_, offered)| *offered);
            if was_offered != *is_offered {
                change.show(&listed_version(folder, version, *is_offered));
            }
        }
        change.put_json(&key, &now, Expectation::Anything, &[])?;
        // The commit has no expectations, so it always applies.
        let _ = change.commit()?;
    }
    Ok(gone.map(|(version, _)| version.clone()).collect())
}

/// The name under which the artifact is listed: `group:artifact`.
fn package(folder: &str) -> String {
    let (group, artifact) = folder.rsplit_once('/').unwrap_or(("", folder));
    format!("{}:{artifact}", group.replace('/', "."))
}

fn listed_version(folder: &str, version: &str, is_offered: bool) -> ListedVersion {
    let listed = ListedVersion::new(package(folder), version);
    if is_offered {
        listed
    } else {
        listed.state("withdrawn").property("reason", "The upstream no longer offers it")
    }
}

/// Returns the versions that the host does not withhold. Their age is not judged here.
fn not_withheld(
    proxy: &Repository,
    package: &str,
    versions: Vec<String>,
    withdrawn: bool,
) -> Result<Vec<String>, Failure> {
    let releases: Vec<Release> =
        versions.iter().map(|version| Release::of(version, None, withdrawn)).collect();
    let judged = versions.into_iter().zip(proxy.judge_releases(package, &releases)?);
    let offered = judged.filter(|(_, verdict)| *verdict != ReleaseVerdict::Withheld);
    Ok(offered.map(|(version, _)| version).collect())
}

/// Stand-in for the newest version. Its publication time is the time of the document's last change.
/// If the host offers the stand-in, all versions are old enough.
fn newest(metadata: &MavenMetadata) -> Release {
    Release::of("", metadata.updated.as_deref().and_then(metadata::updated_ms), false)
}

/// Leaves out versions that are too young. Returns true if there were any. The host judges the age
/// of a version by the age of its POM.
fn leave_out_young(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
    metadata: &mut MavenMetadata,
) -> Result<bool, Failure> {
    let Some((_, artifact)) = folder.rsplit_once('/') else { return Ok(false) };
    let newest: Vec<String> = metadata.versions.iter().rev().take(AGE_CHECKS).cloned().collect();
    let replies = newest.into_iter().filter(|version| !version::is_snapshot(version)).map(|version| {
        let pom = FilePath::stored(&format!("{folder}/{version}/{artifact}-{version}.pom"));
        Ok((version, listed_fetch(cx, "HEAD", &pom).start(proxy)?))
    });
    let replies: Vec<_> = replies.collect::<Result<_, Failure>>()?;
    let mut young = Vec::new();
    for (version, reply) in replies {
        if matches!(reply.status()?, 404 | 410) {
            young.push(version);
        }
    }
    metadata.versions.retain(|version| !young.contains(version));
    Ok(!young.is_empty())
}

/// Sorts the versions. Sets `latest` to the newest version, and `release` to the newest version
/// that is not a snapshot.
fn name_newest(metadata: &mut MavenMetadata) {
    let mut versions: Vec<MavenVersion> =
        metadata.versions.iter().map(|text| MavenVersion::new(text)).collect();
    versions.sort_unstable();
    let release = versions.iter().rev().find(|version| !version.is_snapshot());
    metadata.release = release.cloned().map(MavenVersion::into_text);
    metadata.latest = versions.last().cloned().map(MavenVersion::into_text);
    metadata.versions = versions.into_iter().map(MavenVersion::into_text).collect();
}
