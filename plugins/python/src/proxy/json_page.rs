//! Reads an upstream's JSON page (PEP 691). The plugin does not trust the page: each file name must
//! belong to the project, and invalid entries are left out.

use super::page::{PageVisitor, unusable};
use crate::index::{MetadataFile, ProjectFile};
use crate::listed_name;
use packhouse_sdk::json_scan::{Elements, Span};
use packhouse_sdk::{Blob, Digest, Failure, address};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The list of a project's files in a page.
pub(super) struct FileList<'a> {
    pub(super) body: &'a Blob,
    /// Position of the list in the body.
    pub(super) files: Span,
    /// The page's URL after redirects.
    pub(super) base: &'a str,
    /// The requested target, for messages.
    pub(super) target: &'a str,
    /// The project.
    pub(super) name: &'a str,
    /// The file to look for, if only one is needed.
    pub(super) required: Option<&'a str>,
}

/// A file in a page. Members with an unexpected type are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ListedFile<'a> {
    #[serde(borrow)]
    filename: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(default)]
    hashes: Value,
    #[serde(default)]
    requires_python: Value,
    core_metadata: Option<Value>,
    dist_info_metadata: Option<Value>,
    data_dist_info_metadata: Option<Value>,
    #[serde(default)]
    yanked: Value,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    upload_time: Value,
    #[serde(default)]
    provenance: Value,
}

impl FileList<'_> {
    /// Passes each file to `take`. Skips unreadable entries, and returns their number.
    pub(super) fn each(&self, take: &mut PageVisitor<'_>) -> Result<usize, Failure> {
        let mut elements = Elements::new(self.body, self.files);
        let mut left_out = 0;
        while let Some(element) = elements.next_element().map_err(|error| unusable(self.target, error))? {
            if !self.may_be_required(element) {
                continue;
            }
            let Ok(listed) = serde_json::from_slice::<ListedFile<'_>>(element) else {
                left_out += 1;
                continue;
            };
            if let Some(file) = listed.file(self.base, self.name)
                && take(file)?.is_break()
            {
                break;
            }
        }
        Ok(left_out)
    }

    /// Returns true if the entry may be the required file. An entry with a backslash may contain an
    /// escaped spelling of the name.
    fn may_be_required(&self, element: &[u8]) -> bool {
        let Some(required) = self.required else { return true };
        core::str::from_utf8(element).is_ok_and(|text| text.contains(required) || text.contains('\\'))
    }
}

impl ListedFile<'_> {
    /// Converts the entry. Returns `None` if its file is not of this project, or if its URL is
    /// invalid.
    fn file(self, base: &str, name: &str) -> Option<ProjectFile> {
        let metadata = self.core_metadata.or(self.dist_info_metadata).or(self.data_dist_info_metadata);
        let metadata = match &metadata {
            Some(Value::Bool(true)) => MetadataFile::Unchecked,
            Some(Value::Object(hashes)) => match hashes.get("sha256").and_then(Value::as_str) {
                Some(hex) => with_digest(hex),
                None => MetadataFile::Unchecked,
            },
            _ => MetadataFile::Absent,
        };
        let hashes = self.hashes.as_object().into_iter().flatten();
        let hashes = hashes.filter_map(|(algorithm, hex)| Some((algorithm.as_str(), hex.as_str()?)));
        let file = ProjectFile {
            url: Some(address::join(base, &self.url)?),
            hashes: known_digests(hashes),
            metadata,
            requires_python: text(self.requires_python),
            yanked: match self.yanked {
                Value::Bool(true) => Some(String::new()),
                reason => text(reason).filter(|reason| !reason.is_empty()),
            },
            size: self.size.as_u64(),
            time: text(self.upload_time),
            provenance_url: self.provenance.as_str().and_then(|address| address::join(base, address)),
            ..ProjectFile::default()
        };
        of_project(file, self.filename.into_owned(), name)
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns metadata with this digest, or unchecked metadata if the digest is invalid.
pub(super) fn with_digest(hex: &str) -> MetadataFile {
    match Digest::new("sha256", &hex.to_ascii_lowercase()) {
        Ok(digest) => MetadataFile::Sha256(digest.hex().to_owned()),
        Err(_) => MetadataFile::Unchecked,
    }
}

/// Returns the valid digests of known algorithms, in lower case. Drops all others, because
/// installers would refuse a file with such a digest.
pub(super) fn known_digests<'a>(
    hashes: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    let digests = hashes.into_iter().filter_map(|(algorithm, hex)| {
        Digest::new(&algorithm.to_ascii_lowercase(), &hex.to_ascii_lowercase()).ok()
    });
    digests.map(|digest| (digest.algorithm().to_owned(), digest.hex().to_owned())).collect()
}

/// Sets the file's name, and the version that the name contains. Returns `None` if the name does
/// not belong to this project.
pub(super) fn of_project(file: ProjectFile, filename: String, name: &str) -> Option<ProjectFile> {
    let version = listed_name::version_of(&filename, name)?;
    Some(ProjectFile { filename, version, ..file })
}
