//! An upstream's page in JSON (PEP 691). What it says is a stranger's word: each file must be called like one of this project,
//! and what cannot be understood of it is left out.

use super::page::{Visit, unusable};
use crate::index::{File, Metadata};
use crate::listed_name;
use packhouse_sdk::json_scan::{Elements, Span};
use packhouse_sdk::{Blob, Digest, Failure, address};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The list of files of a project in a page.
pub(super) struct Source<'a> {
    pub(super) body: &'a Blob,
    /// Where the list lies.
    pub(super) files: Span,
    /// Where the page came from.
    pub(super) base: &'a str,
    /// Where it was asked for.
    pub(super) target: &'a str,
    /// The project.
    pub(super) name: &'a str,
    /// The one file that is looked for.
    pub(super) wanted: Option<&'a str>,
}

/// A file as a page has it. A member of another type than it should have is as if it were not there.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed<'a> {
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

impl Source<'_> {
    /// Hands over one file after the other; answers how many cannot be read.
    pub(super) fn each(&self, take: &mut Visit<'_>) -> Result<usize, Failure> {
        let mut elements = Elements::new(self.body, self.files);
        let mut left_out = 0;
        while let Some(element) = elements.next_element().map_err(|error| unusable(self.target, error))? {
            if !self.may_be_wanted(element) {
                continue;
            }
            let Ok(listed) = serde_json::from_slice::<Listed<'_>>(element) else {
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

    /// Whether this may be the file that is looked for. Text with a backslash in it may be written in another way.
    fn may_be_wanted(&self, element: &[u8]) -> bool {
        let Some(wanted) = self.wanted else { return true };
        core::str::from_utf8(element).is_ok_and(|text| text.contains(wanted) || text.contains('\\'))
    }
}

impl Listed<'_> {
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
        let hashes = self.hashes.as_object().into_iter().flatten();
        let hashes = hashes.filter_map(|(algorithm, hex)| Some((algorithm.as_str(), hex.as_str()?)));
        let file = File {
            url: Some(address::join(base, &self.url)?),
            hashes: sound(hashes),
            metadata,
            requires_python: text(self.requires_python),
            yanked: match self.yanked {
                Value::Bool(true) => Some(String::new()),
                reason => text(reason).filter(|reason| !reason.is_empty()),
            },
            size: self.size.as_u64(),
            time: text(self.upload_time),
            provenance_url: self.provenance.as_str().and_then(|address| address::join(base, address)),
            ..File::default()
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

/// Metadata with a digest; one that is none checks nothing.
pub(super) fn checked(hex: &str) -> Metadata {
    match Digest::new("sha256", &hex.to_ascii_lowercase()) {
        Ok(digest) => Metadata::Sha256(digest.hex().to_owned()),
        Err(_) => Metadata::Unchecked,
    }
}

/// Those hashes that can be compared, in lower case. Installers would refuse a file for the others.
pub(super) fn sound<'a>(hashes: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    let digests = hashes.into_iter().filter_map(|(algorithm, hex)| {
        Digest::new(&algorithm.to_ascii_lowercase(), &hex.to_ascii_lowercase()).ok()
    });
    digests.map(|digest| (digest.algorithm().to_owned(), digest.hex().to_owned())).collect()
}

/// The file under its name, where that is one of this project's.
pub(super) fn of_project(file: File, filename: String, name: &str) -> Option<File> {
    let version = listed_name::version_of(&filename, name)?;
    Some(File { filename, version, ..file })
}
