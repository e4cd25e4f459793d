//! The Simple API's JSON (PEP 691, 700, 714, 740, 792).

use super::{API_VERSION, address, provenance};
use crate::index::{File, Metadata, Project};
use packhouse_sdk::Failure;
use serde_json::{Map, Value, json};

/// The list of projects.
pub(super) fn list(names: &[String]) -> Result<Vec<u8>, Failure> {
    let projects: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    Ok(serde_json::to_vec(&json!({"meta": {"api-version": API_VERSION}, "projects": projects}))?)
}

/// A project's files.
pub(super) fn project(project: &Project) -> Result<Vec<u8>, Failure> {
    let offered = project.status.offers_files();
    let files: Vec<Value> =
        project.files.iter().filter(|_| offered).map(|one| file(&project.name, one)).collect();
    Ok(serde_json::to_vec(&json!({
        "meta": {"api-version": API_VERSION},
        "name": project.name,
        "project-status": project.status,
        "versions": project.versions,
        "files": files,
    }))?)
}

fn file(project: &str, file: &File) -> Value {
    let metadata = match &file.metadata {
        Metadata::Absent => json!(false),
        Metadata::Unchecked => json!(true),
        Metadata::Sha256(hex) => json!({"sha256": hex}),
    };
    let mut object = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    set("filename", json!(file.filename));
    set("url", json!(address(project, &file.version, &file.filename)));
    set("hashes", json!(file.hashes));
    set("requires-python", json!(file.requires_python));
    set("core-metadata", metadata.clone());
    set("dist-info-metadata", metadata.clone());
    set("data-dist-info-metadata", metadata);
    set("yanked", file.yanked.as_ref().map_or(json!(false), |reason| yanked(reason)));
    if file.signature {
        set("gpg-sig", json!(true));
    }
    if let Some(size) = file.size {
        set("size", json!(size));
    }
    if let Some(time) = &file.time {
        set("upload-time", json!(time));
    }
    let address = file.provenance.then(|| provenance(project, &file.version, &file.filename));
    set("provenance", json!(address));
    Value::Object(object)
}

/// An empty reason would be read as false.
fn yanked(reason: &str) -> Value {
    if reason.is_empty() { json!(true) } else { json!(reason) }
}
