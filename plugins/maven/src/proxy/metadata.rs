//! The upstream's `maven-metadata.xml`, without what must not be offered.
//!
//! A version that was there once and no longer is was withdrawn: it is shown as such, so that its files are not served any more.
//! One that is too young is left out by asking for its POM, whose age the host judges as it does for every file.

use super::{FilePath, ask, encoded, is_page};
use crate::index::Document;
use crate::layout::{METADATA, join};
use crate::metadata::{self, BadMetadata, Metadata};
use crate::version::{self, Version};
use packhouse_sdk::{
    Context, Expectation, Failure, Found, ReadAt, Release, ReleaseVerdict, Reply, Repository,
    Version as Shown,
};

/// Bytes of an upstream's document.
const LIMIT: u64 = 16 * 1024 * 1024;
/// Versions whose age is asked for, the newest first; older ones are taken to be old enough.
const ASKED: usize = 20;
/// The key of the versions that an upstream offered when it was asked last.
const OFFERED: &str = "u/";

/// The document of a folder; none where the upstream has none, or refuses to say.
pub(crate) fn document(cx: &Context, proxy: &Repository, folder: &str) -> Result<Option<Document>, Failure> {
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
    let mut metadata = Metadata::read_foreign(&bytes).map_err(|why| garbage(folder, &why))?;
    let package = package(folder);
    cx.log().left_out(&package, "versions", metadata.left_out);
    if metadata.versions.is_empty() || metadata.version.is_some() {
        return Ok(Some(Document { bytes, modified: 0 }));
    }
    let mut changed = metadata.left_out > 0;
    let vanished = withdraw(proxy, folder, &metadata.versions)?;
    // Of those that are offered further, the age is judged with that of the others.
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
        return Ok(Some(Document { bytes: metadata.write().into_bytes(), modified: 0 }));
    }
    Ok(Some(Document { bytes, modified: 0 }))
}

/// The document of a folder in an upstream's reply.
fn read(reply: Reply, folder: &str) -> Result<Vec<u8>, Failure> {
    // A page for people is no document: it is not even taken in, and what is kept stays.
    if is_page(&reply.headers()?, &join(folder, METADATA)) {
        return Err(garbage(folder, &BadMetadata("it is a page for people".to_owned())));
    }
    Ok(reply.body()?.read_all(LIMIT)?)
}

fn garbage(folder: &str, why: &BadMetadata) -> Failure {
    let BadMetadata(why) = why;
    Failure::unusable_upstream(format!("{why}, for {}", join(folder, METADATA)))
}

/// Shows what an artifact no longer offers as withdrawn, and what it offers again as it was; answers all that it once offered
/// and does not now.
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
        for (version, there) in &now {
            let was = before.iter().find(|(known, _)| known == version).is_none_or(|(_, there)| *there);
            if was != *there {
                change.show(&shown(folder, version, *there));
            }
        }
        change.put_json(&key, &now, Expectation::Anything, &[])?;
        // It expects nothing, so it is applied.
        let _ = change.commit()?;
    }
    Ok(gone.map(|(version, _)| version.clone()).collect())
}

/// The artifact as it is shown: `group:artifact`.
fn package(folder: &str) -> String {
    let (group, artifact) = folder.rsplit_once('/').unwrap_or(("", folder));
    format!("{}:{artifact}", group.replace('/', "."))
}

fn shown(folder: &str, version: &str, there: bool) -> Shown {
    let shown = Shown::new(package(folder), version);
    if there {
        shown
    } else {
        shown.state("withdrawn").property("reason", "The upstream no longer offers it")
    }
}

/// Those versions that nothing but their age may keep from being offered.
fn not_withheld(
    proxy: &Repository,
    package: &str,
    versions: Vec<String>,
    withdrawn: bool,
) -> Result<Vec<String>, Failure> {
    let releases: Vec<Release> =
        versions.iter().map(|version| Release::of(version, None, withdrawn)).collect();
    let judged = versions.into_iter().zip(proxy.judge_releases(package, &releases)?);
    let kept = judged.filter(|(_, verdict)| *verdict != ReleaseVerdict::Withheld);
    Ok(kept.map(|(version, _)| version).collect())
}

/// When the newest version was there: when the document was last changed. If that may be offered, so may all.
fn newest(metadata: &Metadata) -> Release {
    Release::of("", metadata.updated.as_deref().and_then(metadata::updated_ms), false)
}

/// True when something was left out. The host judges the age, by the same rule as for the files themselves.
fn leave_out_young(
    cx: &Context,
    proxy: &Repository,
    folder: &str,
    metadata: &mut Metadata,
) -> Result<bool, Failure> {
    let Some((_, artifact)) = folder.rsplit_once('/') else { return Ok(false) };
    let newest: Vec<String> = metadata.versions.iter().rev().take(ASKED).cloned().collect();
    let asked = newest.into_iter().filter(|version| !version::is_snapshot(version)).map(|version| {
        let pom = FilePath::stored(&format!("{folder}/{version}/{artifact}-{version}.pom"));
        Ok((version, ask(cx, "HEAD", &pom).start(proxy)?))
    });
    let asked: Vec<_> = asked.collect::<Result<_, Failure>>()?;
    let mut young = Vec::new();
    for (version, reply) in asked {
        if matches!(reply.status()?, 404 | 410) {
            young.push(version);
        }
    }
    metadata.versions.retain(|version| !young.contains(version));
    Ok(!young.is_empty())
}

/// `latest` and `release` are among what is offered.
fn name_newest(metadata: &mut Metadata) {
    let mut versions: Vec<Version> = metadata.versions.iter().map(|text| Version::new(text)).collect();
    versions.sort_unstable();
    let release = versions.iter().rev().find(|version| !version.is_snapshot());
    metadata.release = release.cloned().map(Version::into_text);
    metadata.latest = versions.last().cloned().map(Version::into_text);
    metadata.versions = versions.into_iter().map(Version::into_text).collect();
}
