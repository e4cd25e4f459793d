//! npm packages: packuments with their tarballs, tags, deprecations and times, to a registry by publish documents, or into a folder.

mod folder;
mod names;
mod publish;

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::stream;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use crate::body::{base64, base64_length, enclosed};
use crate::digests::Digests;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::origin::Origin;
use crate::percent;
use crate::place::Place;
use crate::report::{Line, Outcome};
use crate::server::Server;
use crate::stream::measure;
use crate::target::{Parcel, Run, Target, ask, published, sized};

use publish::{Release, file};

/// Bytes of a version's attestations.
const MOST_OF_ATTESTATIONS: usize = 4 << 20;

/// A registry, or a folder that an export wrote.
#[derive(Clone, Debug)]
pub(crate) struct Npm {
    pub(crate) place: Place,
}

/// A package's document.
struct Packument(Value);

/// A version in it.
struct Version<'a> {
    number: &'a str,
    manifest: &'a Map<String, Value>,
    published: Option<Timestamp>,
    /// The package's, of the version that it is of.
    readme: Option<&'a Value>,
}

impl Packument {
    /// Versions, the oldest first.
    fn versions(&self) -> Vec<Version<'_>> {
        let time = |number: &str| self.0.get("time")?.get(number)?.as_str()?.parse().ok();
        let latest = self.0.pointer("/dist-tags/latest").and_then(Value::as_str);
        let readme =
            self.0.get("readme").filter(|readme| readme.as_str().is_some_and(|text| !text.is_empty()));
        let versions = self.0.get("versions").and_then(Value::as_object).into_iter().flatten();
        let mut versions: Vec<Version<'_>> = versions
            .filter_map(|(number, manifest)| {
                Some(Version {
                    number,
                    manifest: manifest.as_object()?,
                    readme: readme.filter(|_| latest == Some(number)),
                    published: time(number),
                })
            })
            .collect();
        versions.sort_by_key(|version| version.published);
        versions
    }

    fn version(&self, number: &str) -> Option<&Map<String, Value>> {
        self.0.get("versions")?.get(number)?.as_object()
    }

    fn tags(&self) -> BTreeMap<String, String> {
        let tags = self.0.get("dist-tags").and_then(Value::as_object).into_iter().flatten();
        tags.filter_map(|(tag, number)| Some((tag.clone(), number.as_str()?.to_owned()))).collect()
    }
}

/// What a manifest says of its tarball.
fn stated(manifest: &Map<String, Value>) -> Digests {
    let mut digests = Digests::default();
    let Some(dist) = manifest.get("dist") else { return digests };
    let text = |member: &str| dist.get(member).and_then(Value::as_str).unwrap_or_default();
    digests.add("sha1", text("shasum"));
    digests.add_integrity(text("integrity"));
    digests
}

/// Why a version should not be used; none where nothing is said.
fn deprecation(manifest: &Map<String, Value>) -> Option<String> {
    match manifest.get("deprecated")? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Bool(true) => Some("this version is deprecated".to_owned()),
        _ => None,
    }
}

impl Npm {
    async fn packument(&self, name: &str) -> Result<Packument, Fault> {
        let path = match &self.place {
            Place::Server(_) => name.replace('/', "%2f"),
            Place::Folder(_) => format!("{name}/packument.json"),
        };
        let read = self.place.read(&path, "application/json").await?;
        let json = serde_json::from_str(&read.text);
        json.map(Packument)
            .map_err(|error| Fault::Refused(format!("the packument of {name} is no JSON: {error}")))
    }

    fn tarball(&self, name: &str, manifest: &Map<String, Value>) -> Result<Origin, Fault> {
        let address = manifest.get("dist").and_then(|dist| dist.get("tarball")?.as_str());
        self.beside(name, address.ok_or_else(|| Fault::Refused("its manifest names no tarball".to_owned()))?)
    }

    /// What a manifest gives the address of.
    fn beside(&self, name: &str, address: &str) -> Result<Origin, Fault> {
        match &self.place {
            Place::Server(_) => self.place.origin(address),
            Place::Folder(_) => self.place.origin(&format!("{name}/{address}")),
        }
    }

    /// The attestations of a version as registries answer them; none where there are none after all.
    async fn attestations(&self, name: &str, manifest: &Map<String, Value>) -> Result<Option<Bytes>, Fault> {
        let address = manifest.get("dist").and_then(|dist| dist.pointer("/attestations/url")?.as_str());
        let Some(address) = address else { return Ok(None) };
        match self.beside(name, address)?.open().await {
            Ok(opened) => opened.gather(MOST_OF_ATTESTATIONS).await.map(Some),
            Err(Fault::Missing(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Moves the packages of a registry; all where none are named.
pub(crate) async fn run(run: &Run, source: Npm, names: Option<Vec<String>>) -> Result<(), Fault> {
    let names = match (names, run.only.is_empty()) {
        (_, false) => run.only.clone(),
        (Some(names), true) => names,
        (None, true) => names::all(&source.place).await?,
    };
    run.each(stream::iter(&names), |name| async {
        match package(run, &source, name).await {
            Ok(()) => Ok(()),
            fault => run.ended(Line::of("package", name), fault.map(|()| Outcome::Present)),
        }
    })
    .await?;
    match &run.target {
        Target::Folder(folder) => folder::names(folder, &names).await,
        Target::Server(_) => Ok(()),
    }
}

async fn package(run: &Run, source: &Npm, name: &str) -> Result<(), Fault> {
    let packument = source.packument(name).await?;
    let versions = packument.versions();
    if versions.is_empty() {
        run.report
            .add(Line::of("package", name).ended(Outcome::Skipped, "it has no version: it was unpublished"));
        return Ok(());
    }
    match &run.target {
        Target::Folder(folder) => {
            let mut kept = Vec::new();
            for version in &versions {
                if save(run, folder, source, name, version).await? {
                    kept.push(version.number);
                }
            }
            folder::packument(folder, name, &packument.0, &kept).await
        }
        Target::Server(server) => {
            let there = held(server, name).await?;
            for version in &versions {
                let known = there.as_ref().and_then(|there| there.version(version.number));
                publish_one(run, server, source, name, version, known).await?;
            }
            let Some(there) = held(server, name).await? else { return Ok(()) };
            deprecations(run, server, name, &packument, &there).await?;
            tags(run, server, name, &packument, &there).await
        }
    }
}

async fn held(server: &Server, name: &str) -> Result<Option<Packument>, Fault> {
    match (Npm { place: Place::Server(server.client.clone()) }).packument(name).await {
        Ok(packument) => Ok(Some(packument)),
        Err(Fault::Missing(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn parcel(source: &Npm, name: &str, version: &Version<'_>, path: &str) -> Result<Parcel, Fault> {
    let line = Line::file(name, path).version(version.number).published(version.published);
    Ok(Parcel {
        line,
        origin: source.tarball(name, version.manifest)?,
        stated: stated(version.manifest),
        size: None,
        published: version.published,
    })
}

async fn publish_one(
    run: &Run,
    server: &Server,
    source: &Npm,
    name: &str,
    version: &Version<'_>,
    there: Option<&Map<String, Value>>,
) -> Result<(), Fault> {
    let path = format!("{name}/-/{}", file(name, version.number));
    let mut parcel = match parcel(source, name, version, &path) {
        Ok(parcel) => parcel,
        Err(fault) => return run.ended(Line::file(name, &path).version(version.number), Err(fault)),
    };
    let result = match there {
        Some(there) => compare(&parcel, &stated(there)).await,
        None => send(run, server, source, name, version, &mut parcel).await,
    };
    run.ended(parcel.line, result)
}

async fn compare(parcel: &Parcel, there: &Digests) -> Result<Outcome, Fault> {
    let same = match parcel.stated.agree(there) {
        Some(same) => same,
        None => measure(parcel.origin.open().await?, there.clone(), None).await.is_ok(),
    };
    if same {
        Ok(Outcome::Present)
    } else {
        Err(Fault::Refused("another tarball of this version is there, and it is not replaced".to_owned()))
    }
}

async fn send(
    run: &Run,
    server: &Server,
    source: &Npm,
    name: &str,
    version: &Version<'_>,
    parcel: &mut Parcel,
) -> Result<Outcome, Fault> {
    let url = server.url(&name.replace('/', "%2f"))?;
    let attestations = source.attestations(name, version.manifest).await?;
    let attestations: Option<Value> = attestations.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Version { number, manifest, readme, .. } = *version;
    let readme = readme.filter(|_| !manifest.contains_key("readme"));
    let release = Release { name, number, manifest, readme, attestations: attestations.as_ref() };
    let (before, after) = release.around();
    let came = run
        .send(parcel, |body, length, at| {
            let whole = length.map(|length| base64_length(length) + (before.len() + after.len()) as u64);
            let request = sized(server.client.request(Method::PUT, &url), whole);
            published(request, at).header(CONTENT_TYPE, "application/json").body(enclosed(
                before.clone(),
                base64(body),
                after.clone(),
            ))
        })
        .await?;
    parcel.line.sha256 = came.sha256();
    parcel.line.size = Some(came.size);
    Ok(Outcome::Moved)
}

async fn deprecations(
    run: &Run,
    server: &Server,
    name: &str,
    packument: &Packument,
    there: &Packument,
) -> Result<(), Fault> {
    for version in packument.versions() {
        let Some(known) = there.version(version.number) else { continue };
        let wanted = deprecation(version.manifest);
        if wanted == deprecation(known) {
            continue;
        }
        let state = if wanted.is_some() { "deprecated" } else { "" };
        let line = Line::of("state", name).version(version.number);
        let line = Line { state: Some(state.to_owned()), reason: wanted.clone(), ..line };
        let marked = server.mark(name, version.number, state, wanted.as_deref().unwrap_or_default()).await;
        run.ended(line, marked.map(|()| Outcome::Moved))?;
    }
    Ok(())
}

async fn tags(
    run: &Run,
    server: &Server,
    name: &str,
    packument: &Packument,
    there: &Packument,
) -> Result<(), Fault> {
    let known = there.tags();
    for (tag, number) in packument.tags() {
        if known.get(&tag) == Some(&number) || there.version(&number).is_none() {
            continue;
        }
        let path = format!("-/package/{}/dist-tags/{}", name.replace('/', "%2f"), percent::segment(&tag));
        let url = server.url(&path)?;
        let body = Value::from(number.as_str()).to_string();
        let put = || {
            server
                .client
                .request(Method::PUT, &url)
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone())
        };
        let line = Line { path: Some(tag.clone()), ..Line::of("tag", name).version(&number) };
        run.ended(line, ask(put).await.map(|_| Outcome::Moved))?;
    }
    Ok(())
}

async fn save(
    run: &Run,
    folder: &Folder,
    source: &Npm,
    name: &str,
    version: &Version<'_>,
) -> Result<bool, Fault> {
    let path = format!("{name}/-/{}", file(name, version.number));
    let mut parcel = match parcel(source, name, version, &path) {
        Ok(parcel) => parcel,
        Err(fault) => return run.ended(Line::file(name, &path), Err(fault)).map(|()| false),
    };
    if let Some(reason) = deprecation(version.manifest) {
        parcel.line.state = Some("deprecated".to_owned());
        parcel.line.reason = Some(reason);
    }
    let result = keep(folder, &path, &mut parcel).await;
    if let Some(attestations) = source.attestations(name, version.manifest).await? {
        folder.put(&format!("{path}.attestations.json"), attestations).await?;
    }
    let kept = result.is_ok();
    run.ended(parcel.line, result)?;
    Ok(kept)
}

async fn keep(folder: &Folder, path: &str, parcel: &mut Parcel) -> Result<Outcome, Fault> {
    let held = if parcel.stated.is_empty() { None } else { folder.holds(path, &parcel.stated).await? };
    let (came, outcome) = match held {
        Some(came) => (came, Outcome::Present),
        None => {
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            (folder.take(path, opened, parcel.stated.clone(), None).await?, Outcome::Moved)
        }
    };
    parcel.line.sha256 = came.sha256();
    parcel.line.size = Some(came.size);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packuments_versions_come_by_their_times() {
        let packument = Packument(serde_json::json!({
            "versions": {"1.0.0": {"deprecated": "old"}, "0.9.0": {"deprecated": ""}, "2.0.0": {"deprecated": true}},
            "time": {"0.9.0": "2020-01-03T00:00:00.000Z", "1.0.0": "2020-01-01T00:00:00.000Z", "2.0.0": "2020-01-02T00:00:00.000Z"},
            "dist-tags": {"latest": "1.0.0"},
        }));
        let versions = packument.versions();
        let numbers: Vec<&str> = versions.iter().map(|version| version.number).collect();
        assert_eq!(numbers, ["1.0.0", "2.0.0", "0.9.0"]);
        let said: Vec<Option<String>> =
            versions.iter().map(|version| deprecation(version.manifest)).collect();
        assert_eq!(said, [Some("old".to_owned()), Some("this version is deprecated".to_owned()), None]);
    }
}
