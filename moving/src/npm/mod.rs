//! npm packages: packuments with their tarballs, tags, deprecations and times. They are published
//! to a registry or written to a folder.

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
use crate::error::MoveError;
use crate::folder::Folder;
use crate::location::SourceLocation;
use crate::origin::Origin;
use crate::percent;
use crate::report::{MoveOutcome, ReportLine};
use crate::server::Server;
use crate::stream::measure;
use crate::target::{MoveRun, MoveTarget, Parcel, ask, published, sized};

use publish::{PublishDocument, file};

/// Maximum size of a version's attestations, in bytes.
const MAX_ATTESTATION_BYTES: usize = 4 << 20;

/// A registry, or a folder that an export wrote.
#[derive(Clone, Debug)]
pub(crate) struct Npm {
    pub(crate) location: SourceLocation,
}

/// The document that describes a package.
struct Packument(Value);

/// A version in a packument.
struct PackumentVersion<'a> {
    number: &'a str,
    manifest: &'a Map<String, Value>,
    published: Option<Timestamp>,
    /// The README of the package, if this version is the latest.
    readme: Option<&'a Value>,
}

impl Packument {
    /// The versions, the oldest first.
    fn versions(&self) -> Vec<PackumentVersion<'_>> {
        let time = |number: &str| self.0.get("time")?.get(number)?.as_str()?.parse().ok();
        let latest = self.0.pointer("/dist-tags/latest").and_then(Value::as_str);
        let readme =
            self.0.get("readme").filter(|readme| readme.as_str().is_some_and(|text| !text.is_empty()));
        let versions = self.0.get("versions").and_then(Value::as_object).into_iter().flatten();
        let mut versions: Vec<PackumentVersion<'_>> = versions
            .filter_map(|(number, manifest)| {
                Some(PackumentVersion {
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

/// The digests of the tarball that a manifest states.
fn stated(manifest: &Map<String, Value>) -> Digests {
    let mut digests = Digests::default();
    let Some(dist) = manifest.get("dist") else { return digests };
    let text = |member: &str| dist.get(member).and_then(Value::as_str).unwrap_or_default();
    digests.add("sha1", text("shasum"));
    digests.add_integrity(text("integrity"));
    digests
}

/// The reason why a version is deprecated, if it is.
fn deprecation(manifest: &Map<String, Value>) -> Option<String> {
    match manifest.get("deprecated")? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Bool(true) => Some("this version is deprecated".to_owned()),
        _ => None,
    }
}

impl Npm {
    async fn packument(&self, name: &str) -> Result<Packument, MoveError> {
        let path = match &self.location {
            SourceLocation::Server(_) => name.replace('/', "%2f"),
            SourceLocation::Folder(_) => format!("{name}/packument.json"),
        };
        let read = self.location.read(&path, "application/json").await?;
        let json = serde_json::from_str(&read.text);
        json.map(Packument)
            .map_err(|error| MoveError::Refused(format!("the packument of {name} is not JSON: {error}")))
    }

    fn tarball(&self, name: &str, manifest: &Map<String, Value>) -> Result<Origin, MoveError> {
        let address = manifest.get("dist").and_then(|dist| dist.get("tarball")?.as_str());
        self.beside(
            name,
            address
                .ok_or_else(|| MoveError::Refused("the manifest has no address of a tarball".to_owned()))?,
        )
    }

    /// The origin of a file whose address a manifest states.
    fn beside(&self, name: &str, address: &str) -> Result<Origin, MoveError> {
        match &self.location {
            SourceLocation::Server(_) => self.location.origin(address),
            SourceLocation::Folder(_) => self.location.origin(&format!("{name}/{address}")),
        }
    }

    /// The attestations of a version, in the form in which registries return them. `None` if the
    /// version has no attestations.
    async fn attestations(
        &self,
        name: &str,
        manifest: &Map<String, Value>,
    ) -> Result<Option<Bytes>, MoveError> {
        let address = manifest.get("dist").and_then(|dist| dist.pointer("/attestations/url")?.as_str());
        let Some(address) = address else { return Ok(None) };
        match self.beside(name, address)?.open().await {
            Ok(opened) => opened.gather(MAX_ATTESTATION_BYTES).await.map(Some),
            Err(MoveError::Missing(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Moves the packages that the run selects. Without a selection, moves the packages in `names`, or
/// all packages of the registry.
pub(crate) async fn run(run: &MoveRun, source: Npm, names: Option<Vec<String>>) -> Result<(), MoveError> {
    let names = match (names, run.only.is_empty()) {
        (_, false) => run.only.clone(),
        (Some(names), true) => names,
        (None, true) => names::all(&source.location).await?,
    };
    run.each(stream::iter(&names), |name| async {
        match package(run, &source, name).await {
            Ok(()) => Ok(()),
            fault => run.ended(ReportLine::of("package", name), fault.map(|()| MoveOutcome::Present)),
        }
    })
    .await?;
    match &run.target {
        MoveTarget::Folder(folder) => folder::names(folder, &names).await,
        MoveTarget::Server(_) => Ok(()),
    }
}

async fn package(run: &MoveRun, source: &Npm, name: &str) -> Result<(), MoveError> {
    let packument = source.packument(name).await?;
    let versions = packument.versions();
    if versions.is_empty() {
        run.report.add(
            ReportLine::of("package", name)
                .ended(MoveOutcome::Skipped, "the package has no version, so it was unpublished"),
        );
        return Ok(());
    }
    match &run.target {
        MoveTarget::Folder(folder) => {
            let mut saved = Vec::new();
            for version in &versions {
                if save(run, folder, source, name, version).await? {
                    saved.push(version.number);
                }
            }
            folder::packument(folder, name, &packument.0, &saved).await
        }
        MoveTarget::Server(server) => {
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

async fn held(server: &Server, name: &str) -> Result<Option<Packument>, MoveError> {
    match (Npm { location: SourceLocation::Server(server.client.clone()) }).packument(name).await {
        Ok(packument) => Ok(Some(packument)),
        Err(MoveError::Missing(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn parcel(source: &Npm, name: &str, version: &PackumentVersion<'_>, path: &str) -> Result<Parcel, MoveError> {
    let line = ReportLine::file(name, path).version(version.number).published(version.published);
    Ok(Parcel {
        line,
        origin: source.tarball(name, version.manifest)?,
        stated: stated(version.manifest),
        size: None,
        published: version.published,
    })
}

async fn publish_one(
    run: &MoveRun,
    server: &Server,
    source: &Npm,
    name: &str,
    version: &PackumentVersion<'_>,
    there: Option<&Map<String, Value>>,
) -> Result<(), MoveError> {
    let path = format!("{name}/-/{}", file(name, version.number));
    let mut parcel = match parcel(source, name, version, &path) {
        Ok(parcel) => parcel,
        Err(fault) => return run.ended(ReportLine::file(name, &path).version(version.number), Err(fault)),
    };
    let result = match there {
        Some(there) => compare(&parcel, &stated(there)).await,
        None => send(run, server, source, name, version, &mut parcel).await,
    };
    run.ended(parcel.line, result)
}

async fn compare(parcel: &Parcel, there: &Digests) -> Result<MoveOutcome, MoveError> {
    let same = match parcel.stated.agree(there) {
        Some(same) => same,
        None => measure(parcel.origin.open().await?, there.clone(), None).await.is_ok(),
    };
    if same {
        Ok(MoveOutcome::Present)
    } else {
        Err(MoveError::Refused(
            "the target has another tarball of this version, which is not replaced".to_owned(),
        ))
    }
}

async fn send(
    run: &MoveRun,
    server: &Server,
    source: &Npm,
    name: &str,
    version: &PackumentVersion<'_>,
    parcel: &mut Parcel,
) -> Result<MoveOutcome, MoveError> {
    let url = server.url(&name.replace('/', "%2f"))?;
    let attestations = source.attestations(name, version.manifest).await?;
    let attestations: Option<Value> = attestations.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let PackumentVersion { number, manifest, readme, .. } = *version;
    let readme = readme.filter(|_| !manifest.contains_key("readme"));
    let release = PublishDocument { name, number, manifest, readme, attestations: attestations.as_ref() };
    let (before, after) = release.around();
    let measured = run
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
    parcel.line.sha256 = measured.sha256();
    parcel.line.size = Some(measured.size);
    Ok(MoveOutcome::Moved)
}

async fn deprecations(
    run: &MoveRun,
    server: &Server,
    name: &str,
    packument: &Packument,
    there: &Packument,
) -> Result<(), MoveError> {
    for version in packument.versions() {
        let Some(known) = there.version(version.number) else { continue };
        let expected = deprecation(version.manifest);
        if expected == deprecation(known) {
            continue;
        }
        let state = if expected.is_some() { "deprecated" } else { "" };
        let line = ReportLine::of("state", name).version(version.number);
        let line = ReportLine { state: Some(state.to_owned()), reason: expected.clone(), ..line };
        let marked = server.mark(name, version.number, state, expected.as_deref().unwrap_or_default()).await;
        run.ended(line, marked.map(|()| MoveOutcome::Moved))?;
    }
    Ok(())
}

async fn tags(
    run: &MoveRun,
    server: &Server,
    name: &str,
    packument: &Packument,
    there: &Packument,
) -> Result<(), MoveError> {
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
        let line = ReportLine { path: Some(tag.clone()), ..ReportLine::of("tag", name).version(&number) };
        run.ended(line, ask(put).await.map(|_| MoveOutcome::Moved))?;
    }
    Ok(())
}

async fn save(
    run: &MoveRun,
    folder: &Folder,
    source: &Npm,
    name: &str,
    version: &PackumentVersion<'_>,
) -> Result<bool, MoveError> {
    let path = format!("{name}/-/{}", file(name, version.number));
    let mut parcel = match parcel(source, name, version, &path) {
        Ok(parcel) => parcel,
        Err(fault) => return run.ended(ReportLine::file(name, &path), Err(fault)).map(|()| false),
    };
    if let Some(reason) = deprecation(version.manifest) {
        parcel.line.state = Some("deprecated".to_owned());
        parcel.line.reason = Some(reason);
    }
    let result = store(folder, &path, &mut parcel).await;
    if let Some(attestations) = source.attestations(name, version.manifest).await? {
        folder.put(&format!("{path}.attestations.json"), attestations).await?;
    }
    let saved = result.is_ok();
    run.ended(parcel.line, result)?;
    Ok(saved)
}

async fn store(folder: &Folder, path: &str, parcel: &mut Parcel) -> Result<MoveOutcome, MoveError> {
    let held = if parcel.stated.is_empty() { None } else { folder.holds(path, &parcel.stated).await? };
    let (measured, outcome) = match held {
        Some(measured) => (measured, MoveOutcome::Present),
        None => {
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            (folder.take(path, opened, parcel.stated.clone(), None).await?, MoveOutcome::Moved)
        }
    };
    parcel.line.sha256 = measured.sha256();
    parcel.line.size = Some(measured.size);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_a_packument_are_sorted_by_time() {
        let packument = Packument(serde_json::json!({
            "versions": {"1.0.0": {"deprecated": "old"}, "0.9.0": {"deprecated": ""}, "2.0.0": {"deprecated": true}},
            "time": {"0.9.0": "2020-01-03T00:00:00.000Z", "1.0.0": "2020-01-01T00:00:00.000Z", "2.0.0": "2020-01-02T00:00:00.000Z"},
            "dist-tags": {"latest": "1.0.0"},
        }));
        let versions = packument.versions();
        let numbers: Vec<&str> = versions.iter().map(|version| version.number).collect();
        assert_eq!(numbers, ["1.0.0", "2.0.0", "0.9.0"]);
        let reasons: Vec<Option<String>> =
            versions.iter().map(|version| deprecation(version.manifest)).collect();
        assert_eq!(reasons, [Some("old".to_owned()), Some("this version is deprecated".to_owned()), None]);
    }
}
