//! Bounds of what a format accepts, and which of them have a name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error_template::RefusalWords;

/// The named limit that `max_manifest_bytes` is a shorthand for.
pub(crate) const MANIFEST: &str = "manifest";
/// Named limits of one format.
const MAX_NAMED: usize = 32;

/// Bounds of what a format accepts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DescriptionLimits {
    /// Bytes of one file at most. Of a loaded plugin it is the operator's word where there is one.
    #[serde(default)]
    pub max_file_bytes: Option<u64>,
    /// Bytes of one request's body at most, where a file is not all of it (a form, base64); that of a file if not said.
    #[serde(default)]
    pub max_body_bytes: Option<u64>,
    /// A limit of the name `manifest`, under which a whole body is of which an intent wants no more than that, whether it names the
    /// limit or not.
    #[serde(default)]
    pub max_manifest_bytes: Option<u64>,
    /// Limits that an intent may name, in place of that of a file. Of a loaded plugin with the operator's word where there is one.
    #[serde(default)]
    pub named: BTreeMap<String, NamedLimit>,
}

/// A limit that an intent may name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NamedLimit {
    /// Bytes of a body at most.
    pub max_bytes: u64,
    /// How more than that is refused; as any other body that is too large, if not said.
    #[serde(default)]
    pub excess: Option<RefusalWords>,
}

impl DescriptionLimits {
    /// Takes the operator's word for the size of a file. What a body may have besides its file stays what the plugin declared.
    pub(crate) fn lower_file(&mut self, bytes: u64) {
        if let (Some(file), Some(body)) = (self.max_file_bytes, self.max_body_bytes) {
            self.max_body_bytes = Some(bytes.saturating_add(body.saturating_sub(file)));
        }
        self.max_file_bytes = Some(bytes);
    }

    /// Takes the operator's word for what is under the limit of this name, where there is one.
    pub(crate) fn set_named(&mut self, name: &str, bytes: u64) {
        if let Some(limit) = self.named.get_mut(name) {
            limit.max_bytes = bytes;
        }
    }

    /// Bytes of a request's body at most.
    pub(crate) fn body(&self) -> Option<u64> {
        self.max_body_bytes.or(self.max_file_bytes)
    }

    /// Makes the limit that `max_manifest_bytes` stands for.
    pub(super) fn name_shorthand(&mut self) {
        if let Some(max_bytes) = self.max_manifest_bytes {
            self.named.entry(MANIFEST.to_owned()).or_insert(NamedLimit { max_bytes, excess: None });
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.named.len() > MAX_NAMED {
            return Err(format!("limits.named must be at most {MAX_NAMED}"));
        }
        for (name, limit) in &self.named {
            let allowed =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
            if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
                return Err(format!(
                    "a limit's name must be lower-case letters, digits, `-` and `_`, not {name:?}"
                ));
            }
            limit
                .excess
                .iter()
                .try_for_each(|words| words.validate(&format!("limits.named.{name}.excess")))?;
        }
        Ok(())
    }
}
