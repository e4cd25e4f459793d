//! The Simple API's JSON (PEP 691, 700, 714, 740, 792).

use super::{API_VERSION, address, provenance};
use crate::index::{File, Metadata};
use crate::status::Status;
use packhouse_sdk::{Error, Output, Request};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The list of projects.
pub(super) fn list(out: &mut Output<'_>, names: &[String]) -> Result<(), Error> {
    begin(out)?;
    out.push(",\"projects\":")?;
    array(out, names.iter().map(|name| BTreeMap::from([("name", name)])))?;
    out.push("}")
}

/// What stands before the list of a project's files.
pub(super) fn begin_project(out: &mut Output<'_>, project: &str, status: &Status) -> Result<(), Error> {
    begin(out)?;
    out.push(",\"name\":")?;
    out.json(project)?;
    out.push(",\"project-status\":")?;
    out.json(&json!(status))?;
    out.push(",\"files\":[")
}

/// What stands behind it; the versions are in their order.
pub(super) fn end_project(out: &mut Output<'_>, versions: &[impl Serialize]) -> Result<(), Error> {
    out.push("],\"versions\":")?;
    out.json(versions)?;
    out.push("}")
}

/// One file as it stands in the list.
pub(super) fn file(project: &str, file: &File, request: &Request) -> Result<String, Error> {
    Ok(serde_json::to_string(&Listed::of(request, project, file))?)
}

fn begin(out: &mut Output<'_>) -> Result<(), Error> {
    out.push("{\"meta\":")?;
    out.json(&json!({"api-version": API_VERSION}))
}

/// One item after the other: the largest projects have ten thousand.
fn array(out: &mut Output<'_>, items: impl Iterator<Item = impl Serialize>) -> Result<(), Error> {
    let mut before = "[";
    for item in items {
        out.push(before)?;
        out.json(&item)?;
        before = ",";
    }
    out.push(if before == "[" { "[]" } else { "]" })
}

/// A file as the API has it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listed<'a> {
    filename: &'a str,
    url: String,
    hashes: &'a BTreeMap<String, String>,
    requires_python: Option<&'a str>,
    core_metadata: Told<'a>,
    dist_info_metadata: Told<'a>,
    data_dist_info_metadata: Told<'a>,
    yanked: Told<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpg_sig: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_time: Option<&'a str>,
    provenance: Option<String>,
}

impl<'a> Listed<'a> {
    fn of(request: &Request, project: &str, file: &'a File) -> Self {
        let metadata = match &file.metadata {
            Metadata::Absent => Told::Whether(false),
            Metadata::Unchecked => Told::Whether(true),
            Metadata::Sha256(sha256) => Told::Digest { sha256 },
        };
        Self {
            filename: &file.filename,
            url: address(project, &file.version, &file.filename),
            hashes: &file.hashes,
            requires_python: file.requires_python.as_deref(),
            core_metadata: metadata,
            dist_info_metadata: metadata,
            data_dist_info_metadata: metadata,
            yanked: file.yanked.as_deref().map_or(Told::Whether(false), yanked),
            gpg_sig: file.signature.then_some(true),
            size: file.size,
            upload_time: file.time.as_deref(),
            provenance: file.provenance.then(|| provenance(request, project, &file.version, &file.filename)),
        }
    }
}

/// A member that is a truth value where there is nothing more to tell.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Told<'a> {
    Whether(bool),
    Reason(&'a str),
    Digest { sha256: &'a str },
}

/// An empty reason would be read as false.
fn yanked(reason: &str) -> Told<'_> {
    if reason.is_empty() { Told::Whether(true) } else { Told::Reason(reason) }
}
