//! An upstream's page in JSON (PEP 691). What it says is a stranger's word: each file must be called like one of this project,
//! and what cannot be understood of it is left out.

use crate::filename::Filename;
use crate::index::{File, Metadata, Project};
use crate::status::Status;
use packhouse_sdk::{Digest, address};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The page of this project that came from there.
struct Page<'a> {
    base: &'a str,
    name: &'a str,
}

/// Its files: each is read and understood before the next, since the largest pages have some ten thousand.
struct Files<'a>(&'a Page<'a>);

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
    #[serde(default)]
    provenance: Value,
}

/// Reads a page that came from `base`. None for what is none.
pub(super) fn read(bytes: &[u8], base: &str, name: &str) -> Option<Project> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let project = Page { base, name }.deserialize(&mut text).ok()?;
    text.end().ok().map(|()| project)
}

impl<'de> DeserializeSeed<'de> for Page<'_> {
    type Value = Project;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Project, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Page<'_> {
    type Value = Project;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a project's page")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut page: A) -> Result<Project, A::Error> {
        let (mut files, mut status) = (None, None);
        while let Some(member) = page.next_key::<String>()? {
            match member.as_str() {
                "files" => files = Some(page.next_value_seed(Files(&self))?),
                "project-status" => status = serde_json::from_value::<Status>(page.next_value()?).ok(),
                _ => drop(page.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Project {
            name: self.name.to_owned(),
            display: self.name.to_owned(),
            status: status.unwrap_or_default(),
            versions: Vec::new(),
            files: files.ok_or_else(|| serde::de::Error::missing_field("files"))?,
            denied: Vec::new(),
        })
    }
}

impl<'de> DeserializeSeed<'de> for Files<'_> {
    type Value = Vec<File>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<File>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Files<'_> {
    type Value = Vec<File>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("files")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut files: A) -> Result<Vec<File>, A::Error> {
        let mut read = Vec::new();
        while let Some(listed) = files.next_element::<Listed>()? {
            read.extend(listed.file(self.0.base, self.0.name));
        }
        Ok(read)
    }
}

impl Listed {
    /// The file, where it is one of this project's and has an address.
    fn file(self, base: &str, name: &str) -> Option<File> {
        let metadata = self.core_metadata.or(self.dist_info_metadata).or(self.data_dist_info_metadata);
        let metadata = match &metadata {
            Some(Value::Bool(true)) => Metadata::Unchecked,
            Some(Value::Object(hashes)) => match hashes.get("sha256").and_then(Value::as_str) {
                Some(hex) => checked(hex),
                None => Metadata::Unchecked,
            },
            _ => Metadata::Absent,
        };
        let file = File {
            url: Some(address::join(base, &self.url)?),
            hashes: sound(self.hashes),
            metadata,
            requires_python: self.requires_python,
            yanked: match self.yanked {
                Value::Bool(true) => Some(String::new()),
                Value::String(reason) if !reason.is_empty() => Some(reason),
                _ => None,
            },
            size: self.size,
            time: self.upload_time,
            provenance_url: self.provenance.as_str().and_then(|address| address::join(base, address)),
            ..File::default()
        };
        of_project(file, self.filename, name)
    }
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
