//! The text of a version in a packument: its manifest, with the members that depend on the
//! requested repository.

use crate::name::PackageName;
use crate::version_content::{PackumentForm, VersionContent};
use packhouse_sdk::{Error, Timestamp};
use serde::Serialize;
use serde_json::json;

/// Parameters for the text of a package's versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionText<'a> {
    /// Address of the repository, as in links.
    pub(crate) address: &'a str,
    pub(crate) name: &'a PackageName,
    pub(crate) form: PackumentForm,
}

impl VersionText<'_> {
    /// Returns the version as a member of an object: its number and its manifest.
    pub(crate) fn member(self, number: &str, content: &VersionContent) -> Result<String, Error> {
        Ok(format!("{}:{}", serde_json::to_string(number)?, self.manifest(number, content)?))
    }

    /// Returns the version's manifest with `deprecated` and `dist`.
    pub(crate) fn manifest(self, number: &str, content: &VersionContent) -> Result<String, Error> {
        let Self { address, name, form } = self;
        let manifest = match form {
            PackumentForm::Abbreviated => &content.abbreviated,
            PackumentForm::Full => &content.full,
        };
        let mut text = String::with_capacity(manifest.len() + content.dist.len() + address.len() + 256);
        text.push_str(manifest.strip_suffix('}').unwrap_or(manifest));
        if let Some(deprecated) = &content.deprecated {
            text += &member("deprecated", deprecated)?;
        }
        text.push_str(",\"dist\":{\"tarball\":");
        text += &serde_json::to_string(&format!("{address}/{}", name.path(number)))?;
        if let Some(attestations) = &content.attestations {
            let mut attestations = attestations.clone();
            let url = format!("{address}/-/npm/v1/attestations/{name}@{number}");
            attestations.insert("url".to_owned(), json!(url));
            text += &member("attestations", &attestations)?;
        }
        let dist = content.dist.strip_prefix('{').unwrap_or(&content.dist);
        if dist != "}" {
            text.push(',');
        }
        text.push_str(dist);
        text.push('}');
        Ok(text)
    }
}

/// Returns a member of an object, with a comma before it.
fn member(name: &str, value: &impl Serialize) -> Result<String, Error> {
    Ok(format!(",\"{name}\":{}", serde_json::to_string(value)?))
}

/// Adds a member with a time, in ms since 1970, to the text of an object's members.
pub(crate) fn add_time(members: &mut String, name: &str, time: u64) -> Result<(), Error> {
    if !members.is_empty() {
        members.push(',');
    }
    *members += &serde_json::to_string(name)?;
    *members += ":\"";
    *members += &Timestamp::from_ms(time).to_rfc3339();
    members.push('"');
    Ok(())
}
