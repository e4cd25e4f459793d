//! `p2/VENDOR/PACKAGE.json` and `p2/VENDOR/PACKAGE~dev.json`: the versions of a package.

use crate::members::{self, FORM, Members, difference};
use crate::records::{self, PackageRecord, file_path};
use crate::upstream_metadata::Listed;
use crate::version::Version;
use crate::{name, proxy};
use packhouse_sdk::{
    Context, Failure, Intent, Output, Params, Repository, Request, Response, Timestamp, percent_encode,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A version as Composer reads it.
struct Found {
    version: Version,
    text: String,
    members: Members,
    /// The kind of its file, if the file is served here.
    kind: Option<String>,
}

/// The package that is asked for, and whether its development versions are.
struct Asked {
    name: String,
    dev: bool,
}

fn asked(params: &Params<'_>) -> Asked {
    let stem = params.segment("file").strip_suffix(".json").unwrap_or_default();
    let (package, dev) = stem.strip_suffix("~dev").map_or((stem, false), |package| (package, true));
    Asked { name: format!("{}/{package}", params.segment("vendor")), dev }
}

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &asked(params).name))
}

/// `GET` of either document.
pub(crate) fn get(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let Asked { name, dev } = asked(params);
    let versions = if name::is_name(&name) { versions(cx, &name, dev)? } else { None };
    let missing = || Failure::not_found(format!("There is no package {name} in this repository"));
    let versions = versions.ok_or_else(missing)?;
    let mut out = Output::new(cx);
    out.push(&format!(r#"{{"minified":"{FORM}","packages":{{"{name}":["#))?;
    let mut before = Members::new();
    for (at, found) in versions.into_iter().enumerate() {
        let now = addressed(request, &name, found)?;
        out.push(if at > 0 { ",{" } else { "{" })?;
        write_difference(&mut out, &before, &now)?;
        out.push("}")?;
        before = now;
    }
    out.push("]}}")?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

/// Writes the members that differ. The time is written always: two versions of one moment look like
/// any two.
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

/// A version's members, with the address of its file here. That of a branch names the state of the
/// branch, so that a lock file never gets another one.
fn addressed(request: &Request, name: &str, found: Found) -> Result<Members, Failure> {
    let Found { version, text, mut members, kind } = found;
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

/// The versions of a package, the newest first; of one version in two repositories the first
/// repository's. None if there is no package.
///
/// In a group a member that cannot be read is left out, unless no other member has the package.
fn versions(cx: &Context, name: &str, dev: bool) -> Result<Option<Vec<Found>>, Failure> {
    let of_sources = cx.all(|repository| of_repository(cx, repository, name, dev))?;
    let there = !of_sources.is_empty();
    let mut known = BTreeSet::new();
    let is_new = |one: &Found| one.version.is_dev() == dev && known.insert(one.version.key());
    let mut found: Vec<Found> = of_sources.into_iter().flatten().filter(is_new).collect();
    found.sort_by(|one, other| other.version.cmp(&one.version));
    Ok(there.then_some(found))
}

fn of_repository(
    cx: &Context,
    repository: &Repository,
    name: &str,
    dev: bool,
) -> Result<Option<Vec<Found>>, Failure> {
    if !repository.is_proxy() {
        return hosted(repository, name);
    }
    let found = |one: Listed| Found {
        version: one.version,
        text: one.text,
        members: one.members,
        kind: one.dist.map(|dist| dist.kind),
    };
    let versions = proxy::versions(cx, repository, name, dev)?;
    Ok(versions.map(|versions| versions.into_iter().map(found).collect()))
}

fn hosted(repository: &Repository, name: &str) -> Result<Option<Vec<Found>>, Failure> {
    let mut found = Vec::new();
    for entry in repository.scan(records::versions(name)) {
        let record = entry?.json::<PackageRecord>()?.value;
        if let Some(version) = Version::parse(&record.version) {
            let (text, members) = (record.version.clone(), described(&record));
            found.push(Found { version, text, members, kind: Some("zip".to_owned()) });
        }
    }
    Ok((!found.is_empty()).then_some(found))
}

/// All that Composer reads of a version.
fn described(record: &PackageRecord) -> Members {
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
