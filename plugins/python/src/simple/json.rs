//! The Simple API's JSON (PEP 691, 700, 714, 740, 792).

use super::{API_VERSION, address, provenance};
use crate::index::{MetadataFile, ProjectFile};
use crate::status::Status;
use packhouse_sdk::{Error, Output, Request};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Writes the list of projects.
pub(super) fn list(out: &mut Output<'_>, names: &[String]) -> Result<(), Error> {
    begin(out)?;
    out.push(",\"projects\":")?;
    array(out, names.iter().map(|name| BTreeMap::from([("name", name)])))?;
    out.push("}")
}

/// Writes the start of a project's document, up to its list of files.
pub(super) fn begin_project(out: &mut Output<'_>, project: &str, status: &Status) -> Result<(), Error> {
    begin(out)?;
    out.push(",\"name\":")?;
    out.json(project)?;
    out.push(",\"project-status\":")?;
    out.json(&json!(status))?;
    out.push(",\"files\":[")
}

/// Writes the rest of a project's document after its list of files. `versions` must be sorted.
pub(super) fn end_project(out: &mut Output<'_>, versions: &[impl Serialize]) -> Result<(), Error> {
    out.push("],\"versions\":")?;
    out.json(versions)?;
    out.push("}")
}

/// Renders an entry of the list of files.
pub(super) fn file(project: &str, file: &ProjectFile, request: &Request) -> Result<String, Error> {
    Ok(serde_json::to_string(&FileEntry::of(request, project, file))?)
}

fn begin(out: &mut Output<'_>) -> Result<(), Error> {
    out.push("{\"meta\":")?;
    out.json(&json!({"api-version": API_VERSION}))
}

/// Writes a list one item at a time, because the largest lists have ten thousand items.
fn array(out: &mut Output<'_>, items: impl Iterator<Item = impl Serialize>) -> Result<(), Error> {
    let mut before = "[";
    for item in items {
        out.push(before)?;
        out.json(&item)?;
        before = ",";
    }
    out.push(if before == "[" { "[]" } else { "]" })
}

/// A file as the API lists it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FileEntry<'a> {
    filename: &'a str,
    url: String,
    hashes: &'a BTreeMap<String, String>,
    requires_python: Option<&'a str>,
    core_metadata: FlagOrDetail<'a>,
    dist_info_metadata: FlagOrDetail<'a>,
    data_dist_info_metadata: FlagOrDetail<'a>,
    yanked: FlagOrDetail<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpg_sig: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_time: Option<&'a str>,
    provenance: Option<String>,
}

impl<'a> FileEntry<'a> {
    fn of(request: &Request, project: &str, file: &'a ProjectFile) -> Self {
        let metadata = match &file.metadata {
            MetadataFile::Absent => FlagOrDetail::Flag(false),
            MetadataFile::Unchecked => FlagOrDetail::Flag(true),
            MetadataFile::Sha256(sha256) => FlagOrDetail::Digest { sha256 },
        };
        Self {
            filename: &file.filename,
            url: address(project, &file.version, &file.filename),
            hashes: &file.hashes,
            requires_python: file.requires_python.as_deref(),
            core_metadata: metadata,
            dist_info_metadata: metadata,
            data_dist_info_metadata: metadata,
            yanked: file.yanked.as_deref().map_or(FlagOrDetail::Flag(false), yanked),
            gpg_sig: file.signature.then_some(true),
            size: file.size,
            upload_time: file.time.as_deref(),
            provenance: file.provenance.then(|| provenance(request, project, &file.version, &file.filename)),
        }
    }
}

/// A member that is a boolean, or a more specific value.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum FlagOrDetail<'a> {
    Flag(bool),
    Reason(&'a str),
    Digest { sha256: &'a str },
}

/// Converts the reason of a yank. An empty reason becomes `true`, because clients treat an empty
/// text as false.
fn yanked(reason: &str) -> FlagOrDetail<'_> {
    if reason.is_empty() { FlagOrDetail::Flag(true) } else { FlagOrDetail::Reason(reason) }
}
