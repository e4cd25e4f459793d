//! An upstream's page in JSON (PEP 691). What it says is a stranger's word: each file must be called like one of this project,
//! and what cannot be understood of it is left out.

use super::url;
use crate::filename::Filename;
use crate::index::{File, Metadata, Project};
use crate::status::Status;
use packhouse_sdk::Digest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Page {
    files: Vec<Listed>,
    #[serde(rename = "project-status", default)]
    status: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    requires_python: Option<String>,
    core_metadata: Option<Value>,
    dist_info_metadata: Option<Value>,
    data_dist_info_metadata: Option<Value>,
    #[serde(default)]
    yanked: Value,
    size: Option<u64>,
    upload_time: Option<String>,
}

/// Reads a page that came from `base`. None for what is none.
pub(super) fn read(bytes: &[u8], base: &str, name: &str) -> Option<Project> {
    let page: Page = serde_json::from_slice(bytes).ok()?;
    let files = page.files.into_iter().filter_map(|listed| {
        let metadata = listed.core_metadata.or(listed.dist_info_metadata).or(listed.data_dist_info_metadata);
        let metadata = match &metadata {
            Some(Value::Bool(true)) => Metadata::Unchecked,
            Some(Value::Object(hashes)) => match hashes.get("sha256").and_then(Value::as_str) {
                Some(hex) => checked(hex),
                None => Metadata::Unchecked,
            },
            _ => Metadata::Absent,
        };
        let file = File {
            url: Some(url::join(base, &listed.url)?),
            hashes: sound(listed.hashes),
            metadata,
            requires_python: listed.requires_python,
            yanked: match listed.yanked {
                Value::Bool(true) => Some(String::new()),
                Value::String(reason) if !reason.is_empty() => Some(reason),
                _ => None,
            },
            size: listed.size,
            time: listed.upload_time,
            ..File::default()
        };
        of_project(file, listed.filename, name)
    });
    let status = page.status.and_then(|status| serde_json::from_value::<Status>(status).ok());
    Some(Project {
        name: name.to_owned(),
        display: name.to_owned(),
        status: status.unwrap_or_default(),
        versions: Vec::new(),
        files: files.collect(),
    })
}

/// Metadata with a digest; one that is none checks nothing.
pub(super) fn checked(hex: &str) -> Metadata {
    match Digest::new("sha256", &hex.to_ascii_lowercase()) {
        Ok(digest) => Metadata::Sha256(digest.hex().to_owned()),
        Err(_) => Metadata::Unchecked,
    }
}

/// Those hashes that can be compared, in lower case. Installers would refuse a file for the others.
pub(super) fn sound<S: AsRef<str>>(hashes: impl IntoIterator<Item = (S, S)>) -> BTreeMap<String, String> {
    let digests = hashes.into_iter().filter_map(|(algorithm, hex)| {
        Digest::new(&algorithm.as_ref().to_ascii_lowercase(), &hex.as_ref().to_ascii_lowercase()).ok()
    });
    digests.map(|digest| (digest.algorithm().to_owned(), digest.hex().to_owned())).collect()
}

/// The file under its name, where that is one of this project's.
pub(super) fn of_project(file: File, filename: String, name: &str) -> Option<File> {
    let read = Filename::of_project(&filename, name)?;
    Some(File { filename, version: read.version.to_string(), ..file })
}
