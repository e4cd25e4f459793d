//! What a package says of itself at length. Clients publish it in the version's manifest; the packument shows that of the version
//! that `latest` names, at its top and nowhere else.
//!
//! Each version has its own, so that the right one stands there when `latest` moves. One that is long is a blob: versions whose
//! texts are equal share it, and no record grows with it.

use crate::name::Name;
use crate::records;
use packhouse_sdk::{Context, Digest, Error, ReadAt, Repository};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes that are kept and shown. npm's own registry shows as many.
pub(crate) const LIMIT: usize = 64 << 10;
/// Bytes that a record holds itself.
const INLINE: usize = 16 << 10;
/// Bytes of the name of the file that it was taken from.
const FILE_NAME: usize = 255;
/// What npm and pnpm send where there is none.
const NONE: &str = "ERROR: No README data found!";

/// A text, and where it was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readme {
    /// At most [`LIMIT`] bytes.
    pub(crate) text: String,
    /// The name of its file; empty where nobody says so.
    pub(crate) file: String,
}

/// A version's record of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    file: String,
    /// The text, unless it is a blob.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    /// The blob that holds the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<Digest>,
}

impl Readme {
    /// Takes it out of a manifest, or a document that is in its place; none where it has none.
    pub(crate) fn take(members: &mut Map<String, Value>) -> Option<Self> {
        let (text, file) = (members.remove("readme"), members.remove("readmeFilename"));
        let file = file.as_ref().and_then(Value::as_str).unwrap_or_default();
        Self::new(text.as_ref()?.as_str()?, file)
    }

    /// None for a text that says nothing.
    pub(crate) fn new(text: &str, file: &str) -> Option<Self> {
        let says = !text.trim().is_empty() && text != NONE;
        says.then(|| Self { text: cut(text, LIMIT).to_owned(), file: cut(file, FILE_NAME).to_owned() })
    }

    /// What a version's record is to hold; a long text is held in the repository by then.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn keep(self, cx: &Context, repository: &Repository) -> Result<Stored, Error> {
        let Self { text, file } = self;
        if text.len() <= INLINE {
            return Ok(Stored { file, text, blob: None });
        }
        let blob = repository.keep(&cx.write_blob(text.as_bytes())?)?;
        Ok(Stored { file, text: String::new(), blob: Some(blob) })
    }

    /// That of a version; none where it has none.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn of(repository: &Repository, name: &Name, number: &str) -> Result<Option<Self>, Error> {
        let Some(stored) = repository.get_json::<Stored>(&records::readme(name, number))? else {
            // Of what was published before versions had their own, that of the package is known.
            let before = repository.get(&records::package_readme(name))?;
            return Ok(before.and_then(|entry| Self::new(&records::text(entry.value), "")));
        };
        let Stored { file, text, blob } = stored.value;
        let text = match blob {
            None => text,
            Some(digest) => records::text(repository.recorded_blob(&digest)?.read_all(LIMIT as u64)?),
        };
        Ok((!text.is_empty()).then_some(Self { text, file }))
    }
}

/// At most so many bytes, whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(members: &Value) -> Option<Readme> {
        Readme::take(&mut members.as_object().cloned().unwrap())
    }

    #[test]
    fn a_text_that_says_nothing_is_none() {
        for members in [json!({}), json!({"readme": NONE}), json!({"readme": " \n"}), json!({"readme": 5})] {
            assert_eq!(taken(&members), None, "{members}");
        }
        let expected = Readme { text: "# lib".to_owned(), file: "README.md".to_owned() };
        assert_eq!(taken(&json!({"readme": "# lib", "readmeFilename": "README.md"})), Some(expected));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let readme = taken(&json!({"readme": format!("x{}", "é".repeat(LIMIT))})).unwrap();
        assert_eq!(readme.text.len(), LIMIT - 1);
    }
}
