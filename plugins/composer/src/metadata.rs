//! The documents `p2/VENDOR/PACKAGE.json` and `p2/VENDOR/PACKAGE~dev.json` with the versions of a
//! package.

use crate::members::{self, FORM, Members, difference};
use crate::records::{self, PackageRecord, file_path};
use crate::upstream_metadata::UpstreamVersion;
use crate::version::Version;
use crate::{name, proxy};
use packhouse_sdk::{
    Context, Failure, Intent, Output, Params, Repository, Request, Response, Timestamp, percent_encode,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A version in the form that Composer reads.
struct VersionEntry {
    version: Version,
    text: String,
    members: Members,
    /// The archive type of its file, if this server serves the file.
    kind: Option<String>,
}

/// The document that a request names.
struct RequestedDocument {
    /// The name of the package.
    name: String,
    /// True for the document with the development versions.
    dev: bool,
}

fn requested_document(params: &Params<'_>) -> RequestedDocument {
    let stem = params.segment("file").strip_suffix(".json").unwrap_or_default();
    let (package, dev) = stem.strip_suffix("~dev").map_or((stem, false), |package| (package, true));
    RequestedDocument { name: format!("{}/{package}", params.segment("vendor")), dev }
}

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &requested_document(params).name))
}

/// Serves one of the two documents.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let RequestedDocument { name, dev } = requested_document(params);
    let versions = if name::is_name(&name) { versions(cx, &name, dev)? } else { None };
    let missing = || Failure::not_found(format!("There is no package {name} in this repository"));
    let versions = versions.ok_or_else(missing)?;
    let mut out = Output::new(cx);
    out.push(&format!(r#"{{"minified":"{FORM}","packages":{{"{name}":["#))?;
    let mut before = Members::new();
    for (at, entry) in versions.into_iter().enumerate() {
        let now = addressed(request, &name, entry)?;
        out.push(if at > 0 { ",{" } else { "{" })?;
        write_difference(&mut out, &before, &now)?;
        out.push("}")?;
        before = now;
    }
    out.push("]}}")?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

/// Writes the members that differ, and always the time. The form of the document therefore does not
/// depend on whether two versions have the same time.
fn write_difference(out: &mut Output<'_>, before: &Members, now: &Members) -> Result<(), Failure> {
    let mut written = difference(before, now);
    if let Some(time) = now.get("time") {
        written.insert("time", time);
    }
    for (at, (member, json)) in written.into_iter().enumerate() {
        out.push(if at > 0 { "," } else { "" })?;
        out.json(member)?;
        out.push(":")?;
        out.push(json)?;
    }
    Ok(())
}

/// Returns the members of a version, with the address of its file on this server. For a branch, the
/// address names the state of the branch. An installation from a lock file thus never gets another
/// state.
fn addressed(request: &Request, name: &str, entry: VersionEntry) -> Result<Members, Failure> {
    let VersionEntry { version, text, mut members, kind } = entry;
    let Some(kind) = kind else { return Ok(members) };
    let encoded = text.split('/').map(percent_encode).collect::<Vec<_>>().join("/");
    let mut url = request.link(&file_path(name, &encoded, &kind));
    if let Some(reference) = proxy::reference(&members).filter(|_| version.is_dev()) {
        url = format!("{url}?reference={}", percent_encode(&reference));
    }
    let mut dist = members::object(&members, "dist").unwrap_or_default();
    dist.insert("url".to_owned(), url.into());
    members.insert("dist".to_owned(), serde_json::to_string(&dist)?.into());
    Ok(members)
}

/// The versions of a package, the newest first; `None` if the package does not exist. If two
/// repositories have the same version, only the version of the first repository is listed.
///
/// A group leaves out a member that fails. If no other member has the package, the request fails.
fn versions(cx: &Context, name: &str, dev: bool) -> Result<Option<Vec<VersionEntry>>, Failure> {
    let of_sources = cx.all(|repository| of_repository(cx, repository, name, dev))?;
    let exists = !of_sources.is_empty();
    let mut known = BTreeSet::new();
    let is_new = |one: &VersionEntry| one.version.is_dev() == dev && known.insert(one.version.key());
    let mut found: Vec<VersionEntry> = of_sources.into_iter().flatten().filter(is_new).collect();
    found.sort_by(|one, other| other.version.cmp(&one.version));
    Ok(exists.then_some(found))
}

fn of_repository(
    cx: &Context,
    repository: &Repository,
    name: &str,
    dev: bool,
) -> Result<Option<Vec<VersionEntry>>, Failure> {
    if !repository.is_proxy() {
        return hosted(repository, name);
    }
    let entry = |one: UpstreamVersion| VersionEntry {
        version: one.version,
        text: one.text,
        members: one.members,
        kind: one.dist.map(|dist| dist.kind),
    };
    let versions = proxy::versions(cx, repository, name, dev)?;
    Ok(versions.map(|versions| versions.into_iter().map(entry).collect()))
}

fn hosted(repository: &Repository, name: &str) -> Result<Option<Vec<VersionEntry>>, Failure> {
    let mut found = Vec::new();
    for entry in repository.scan(records::versions(name)) {
        let record = entry?.json::<PackageRecord>()?.value;
        if let Some(version) = Version::parse(&record.version) {
            let (text, members) = (record.version.clone(), published_members(&record));
            found.push(VersionEntry { version, text, members, kind: Some("zip".to_owned()) });
        }
    }
    Ok((!found.is_empty()).then_some(found))
}

/// All members that Composer reads of a published version.
fn published_members(record: &PackageRecord) -> Members {
    let PackageRecord { name, version, sha1, time, .. } = record;
    let own = json!({
        "name": name, "version": version, "time": Timestamp::from_ms(*time).to_rfc3339(),
        "dist": {"reference": sha1, "shasum": sha1, "type": "zip"},
    });
    let mut members = members::of_object(&record.members);
    members.extend(members::of_object(own.as_object().unwrap_or(&Map::new())));
    if record.deprecated.is_some() {
        members.entry("abandoned".to_owned()).or_insert_with(|| Value::from(true).to_string().into());
    }
    members
}
