//! A version as it stands in a packument: its manifest, with what depends on who asks, and when.

use crate::name::Name;
use crate::version_piece::{Form, Piece};
use packhouse_sdk::{Error, Timestamp};
use serde::Serialize;
use serde_json::json;

/// How versions of a package are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionText<'a> {
    /// Of the repository, as links have it.
    pub(crate) address: &'a str,
    pub(crate) name: &'a Name,
    pub(crate) form: Form,
}

impl VersionText<'_> {
    /// The version as a member of an object.
    pub(crate) fn member(self, number: &str, piece: &Piece) -> Result<String, Error> {
        Ok(format!("{}:{}", serde_json::to_string(number)?, self.manifest(number, piece)?))
    }

    /// The version's manifest.
    pub(crate) fn manifest(self, number: &str, piece: &Piece) -> Result<String, Error> {
        let Self { address, name, form } = self;
        let manifest = match form {
            Form::Abbreviated => &piece.abbreviated,
            Form::Full => &piece.full,
        };
        let mut text = String::with_capacity(manifest.len() + piece.dist.len() + address.len() + 256);
        text.push_str(manifest.strip_suffix('}').unwrap_or(manifest));
        if let Some(deprecated) = &piece.deprecated {
            text += &member("deprecated", deprecated)?;
        }
        text.push_str(",\"dist\":{\"tarball\":");
        text += &serde_json::to_string(&format!("{address}/{}", name.path(number)))?;
        if let Some(attestations) = &piece.attestations {
            let mut attestations = attestations.clone();
            let url = format!("{address}/-/npm/v1/attestations/{name}@{number}");
            attestations.insert("url".to_owned(), json!(url));
            text += &member("attestations", &attestations)?;
        }
        let dist = piece.dist.strip_prefix('{').unwrap_or(&piece.dist);
        if dist != "}" {
            text.push(',');
        }
        text.push_str(dist);
        text.push('}');
        Ok(text)
    }
}

/// A member that follows others.
fn member(name: &str, value: &impl Serialize) -> Result<String, Error> {
    Ok(format!(",\"{name}\":{}", serde_json::to_string(value)?))
}

/// Adds when something was published, in ms since 1970, to the members of an object.
pub(crate) fn add_time(members: &mut String, of: &str, time: u64) -> Result<(), Error> {
    if !members.is_empty() {
        members.push(',');
    }
    *members += &serde_json::to_string(of)?;
    *members += ":\"";
    *members += &Timestamp::from_ms(time).to_rfc3339();
    members.push('"');
    Ok(())
}
