//! Readmes. Clients publish the readme in the version's manifest. The packument has one readme, at
//! its top level: the readme of the version that `latest` names.
//!
//! Each version has its own readme record, so that the packument's readme changes when `latest`
//! moves. A long readme is a blob: versions with equal texts share the blob, and records stay
//! small.

use crate::name::PackageName;
use crate::records;
use packhouse_sdk::{Context, Digest, Error, ReadAt, Repository};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of bytes of a readme that are stored and served, as in npm's own registry. The
/// rest is cut.
pub(crate) const LIMIT: usize = 64 << 10;
/// Maximum number of bytes of a readme in its record. A longer readme is a blob.
const INLINE: usize = 16 << 10;
/// Maximum number of bytes of the name of the readme's file.
const FILE_NAME: usize = 255;
/// The text that npm and pnpm send for a package without a readme.
const NONE: &str = "ERROR: No README data found!";

/// A readme and the name of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageReadme {
    /// The text, of at most [`LIMIT`] bytes.
    pub(crate) text: String,
    /// Name of the readme's file; empty if it is unknown.
    pub(crate) file: String,
}

/// The readme's record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadmeRecord {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    file: String,
    /// The text; empty if it is a blob.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    /// The blob that holds the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<Digest>,
}

impl PackageReadme {
    /// Removes the readme from a manifest and returns it. Returns `None` if the manifest has no
    /// readme.
    pub(crate) fn take(members: &mut Map<String, Value>) -> Option<Self> {
        let (text, file) = (members.remove("readme"), members.remove("readmeFilename"));
        let file = file.as_ref().and_then(Value::as_str).unwrap_or_default();
        Self::new(text.as_ref()?.as_str()?, file)
    }

    /// Creates a readme. Returns `None` for an empty text, and for the text that npm sends for a
    /// missing readme.
    pub(crate) fn new(text: &str, file: &str) -> Option<Self> {
        let has_text = !text.trim().is_empty() && text != NONE;
        has_text.then(|| Self { text: cut(text, LIMIT).to_owned(), file: cut(file, FILE_NAME).to_owned() })
    }

    /// Stores a long text as a blob, and returns the readme's record.
    ///
    /// # Errors
    /// Errors of the host.
    pub(crate) fn store(self, cx: &Context, repository: &Repository) -> Result<ReadmeRecord, Error> {
        let Self { text, file } = self;
        if text.len() <= INLINE {
            return Ok(ReadmeRecord { file, text, blob: None });
        }
        let blob = repository.keep(&cx.write_blob(text.as_bytes())?)?;
        Ok(ReadmeRecord { file, text: String::new(), blob: Some(blob) })
    }

    /// Returns the readme of a version, or `None` if it has no readme.
    ///
    /// # Errors
    /// Errors of the host.
    pub(crate) fn find(
        repository: &Repository,
        name: &PackageName,
        number: &str,
    ) -> Result<Option<Self>, Error> {
        let Some(stored) = repository.get_json::<ReadmeRecord>(&records::readme(name, number))? else {
            // Versions that were published before readme records existed share the one readme of
            // their package.
            let before = repository.get(&records::package_readme(name))?;
            return Ok(before.and_then(|entry| Self::new(&records::text(entry.value), "")));
        };
        let ReadmeRecord { file, text, blob } = stored.value;
        let text = match blob {
            None => text,
            Some(digest) => records::text(repository.recorded_blob(&digest)?.read_all(LIMIT as u64)?),
        };
        Ok((!text.is_empty()).then_some(Self { text, file }))
    }
}

/// Cuts a text to a number of bytes, between characters.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(members: &Value) -> Option<PackageReadme> {
        PackageReadme::take(&mut members.as_object().cloned().unwrap())
    }

    #[test]
    fn an_empty_text_is_not_a_readme() {
        for members in [json!({}), json!({"readme": NONE}), json!({"readme": " \n"}), json!({"readme": 5})] {
            assert_eq!(taken(&members), None, "{members}");
        }
        let expected = PackageReadme { text: "# lib".to_owned(), file: "README.md".to_owned() };
        assert_eq!(taken(&json!({"readme": "# lib", "readmeFilename": "README.md"})), Some(expected));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let readme = taken(&json!({"readme": format!("x{}", "é".repeat(LIMIT))})).unwrap();
        assert_eq!(readme.text.len(), LIMIT - 1);
    }
}
