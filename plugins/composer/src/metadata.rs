//! `p2/VENDOR/PACKAGE.json` and `p2/VENDOR/PACKAGE~dev.json`: the versions of a package.

use crate::found::Found;
use crate::minify;
use crate::name;
use crate::proxy;
use crate::records::{self, PackageRecord};
use crate::version::Version;
use packhouse_sdk::{
    Context, Error, Failure, Intent, Output, Params, Repository, Request, Response, Timestamp, percent_encode,
};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub(crate) fn plan(_request: &Request, params: &Params<'_>) -> Result<Intent, Failure> {
    Ok(name::about(Intent::read(), &asked(params).0))
}

/// The package that is asked for, and whether its development versions are.
fn asked(params: &Params<'_>) -> (String, bool) {
    let file = params.segment("file");
    let stem = file.strip_suffix(".json").unwrap_or_default();
    let (package, dev) = stem.strip_suffix("~dev").map_or((stem, false), |package| (package, true));
    (format!("{}/{package}", params.segment("vendor")), dev)
}

pub(crate) fn get(cx: &Context, request: &Request, params: &Params<'_>) -> Result<Response, Failure> {
    let (name, dev) = asked(params);
    let versions = if name::is_name(&name) { versions(cx, &name, dev)? } else { None };
    let versions = versions.ok_or_else(|| missing(&name))?;
    let mut out = Output::new(cx);
    out.push(&format!("{{\"minified\":\"{}\",\"packages\":{{", minify::FORM))?;
    out.json(&name)?;
    out.push(":[")?;
    let mut before = Map::new();
    for (at, found) in versions.iter().enumerate() {
        let now = addressed(request, &name, &found.json)?;
        out.push(if at > 0 { "," } else { "" })?;
        let mut written = minify::difference(&before, &now);
        // Two versions of one moment are written as any two.
        if let Some(time) = now.get("time") {
            written.insert("time".to_owned(), time.clone());
        }
        out.json(&written)?;
        before = now;
    }
    out.push("]}}")?;
    let content = out.finish()?;
    Ok(Response::ok().content_type("application/json").revalidate().content(content))
}

pub(crate) fn missing(name: &str) -> Failure {
    Failure::not_found(format!("There is no package {name} in this repository"))
}

/// With the address of its file here.
fn addressed(request: &Request, name: &str, json: &str) -> Result<Map<String, Value>, Error> {
    let mut version: Map<String, Value> = serde_json::from_str(json)?;
    let text = version.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(dist) = version.get_mut("dist").and_then(Value::as_object_mut) {
        let kind = dist.get("type").and_then(Value::as_str).unwrap_or("zip");
        let url = request.link(&records::file(name, &percent_encode(&text), kind));
        dist.insert("url".to_owned(), url.into());
    }
    Ok(version)
}

/// The versions of a package, the newest first; of one version in two repositories the first stands. None where there is no package.
fn versions(cx: &Context, name: &str, dev: bool) -> Result<Option<Vec<Found>>, Failure> {
    let (mut found, mut known, mut there) = (Vec::new(), BTreeSet::new(), false);
    for repository in cx.sources()? {
        let more = if repository.is_proxy() {
            proxy::versions(cx, repository, name, dev)?
        } else {
            hosted(repository, name)?
        };
        let Some(more) = more else { continue };
        there = true;
        found.extend(
            more.into_iter().filter(|one| one.version.is_dev() == dev && known.insert(one.version.key())),
        );
    }
    found.sort_by(|one: &Found, other| Reverse(&one.version).cmp(&Reverse(&other.version)));
    Ok(there.then_some(found))
}

fn hosted(repository: &Repository, name: &str) -> Result<Option<Vec<Found>>, Failure> {
    let mut found = Vec::new();
    for entry in repository.scan(records::versions(name)) {
        let record = entry?.json::<PackageRecord>()?.value;
        let Some(version) = Version::parse(&record.version) else { continue };
        found.push(Found { version, json: serde_json::to_string(&described(record))? });
    }
    Ok((!found.is_empty()).then_some(found))
}

/// What Composer is told of a version.
fn described(record: PackageRecord) -> Map<String, Value> {
    let mut members = record.members;
    let dist = json!({"type": "zip", "shasum": record.sha1, "reference": record.sha1});
    let time = Timestamp::from_ms(record.time).to_rfc3339();
    for (name, value) in [
        ("name", json!(record.name)),
        ("version", json!(record.version)),
        ("dist", dist),
        ("time", json!(time)),
    ] {
        members.insert(name.to_owned(), value);
    }
    if record.deprecated.is_some() {
        members.entry("abandoned").or_insert(true.into());
    }
    members
}
