//! Words of the contract's first release, and the data that each word stands for now. Components
//! that were built for that release still run.

use serde::{Deserialize, Serialize};

use super::error_template::{ErrorTemplate, RefusalWords};

/// Form of error bodies, selected by name.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorStyle {
    /// One object: `error`, with `reason_code` or `code`.
    #[default]
    Plain,
    /// A list under `errors`, with the codes of the OCI distribution specification.
    Registry,
}

/// Meaning of the word `registry`.
#[derive(Deserialize)]
struct RegistryFormat {
    errors: ErrorTemplate,
    /// Refusal of a manifest that is too large.
    manifest: RefusalWords,
}

impl ErrorStyle {
    /// Returns the template that the word stands for, and the refusal of a body over the limit
    /// `manifest`.
    pub(super) fn stands_for(self) -> Result<(ErrorTemplate, Option<RefusalWords>), String> {
        match self {
            Self::Plain => Ok((ErrorTemplate::default(), None)),
            Self::Registry => {
                let registry: RegistryFormat =
                    serde_json::from_str(include_str!("registry.json")).map_err(|error| {
                        format!("the host's own error format for registries cannot be read: {error}")
                    })?;
                Ok((registry.errors, Some(registry.manifest)))
            }
        }
    }
}
