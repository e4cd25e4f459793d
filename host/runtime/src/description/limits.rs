//! Limits of what a format accepts, some of which have names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error_template::RefusalWords;

/// The named limit that `max_manifest_bytes` is a shorthand for.
pub(crate) const MANIFEST: &str = "manifest";
/// Most named limits of one format.
const MAX_NAMED: usize = 32;

/// Limits of what a format accepts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DescriptionLimits {
    /// Most bytes of one file. In a loaded plugin, the operator's setting replaces it.
    #[serde(default)]
    pub max_file_bytes: Option<u64>,
    /// Most bytes of one request body, for bodies with more than the file (a form, base64). The
    /// default is the limit of a file.
    #[serde(default)]
    pub max_body_bytes: Option<u64>,
    /// Limit with the name `manifest`. The limit applies to a whole body if its intent requests no
    /// more bytes, even if the intent does not name the limit.
    #[serde(default)]
    pub max_manifest_bytes: Option<u64>,
    /// Limits that an intent may name, in place of the limit of a file. In a loaded plugin, the
    /// operator's settings replace them.
    #[serde(default)]
    pub named: BTreeMap<String, NamedLimit>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NamedLimit {
    /// Most bytes of a body.
    pub max_bytes: u64,
    /// Refusal of a larger body. By default, the refusal is the general one for a body that is too
    /// large.
    #[serde(default)]
    pub excess: Option<RefusalWords>,
}

impl DescriptionLimits {
    /// Applies the operator's limit of file sizes. The overhead that a body may have beyond its
    /// file stays as the plugin declared it.
    pub(crate) fn lower_file(&mut self, bytes: u64) {
        if let (Some(file), Some(body)) = (self.max_file_bytes, self.max_body_bytes) {
            self.max_body_bytes = Some(bytes.saturating_add(body.saturating_sub(file)));
        }
        self.max_file_bytes = Some(bytes);
    }

    /// Applies the operator's setting to the limit of this name, if the plugin has one.
    pub(crate) fn set_named(&mut self, name: &str, bytes: u64) {
        if let Some(limit) = self.named.get_mut(name) {
            limit.max_bytes = bytes;
        }
    }

    /// Most bytes of a request body.
    pub(crate) fn body(&self) -> Option<u64> {
        self.max_body_bytes.or(self.max_file_bytes)
    }

    /// Adds the limit that `max_manifest_bytes` stands for.
    pub(super) fn name_shorthand(&mut self) {
        if let Some(max_bytes) = self.max_manifest_bytes {
            self.named.entry(MANIFEST.to_owned()).or_insert(NamedLimit { max_bytes, excess: None });
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.named.len() > MAX_NAMED {
            return Err(format!("limits.named may have at most {MAX_NAMED} entries"));
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
