//! Words of the contract as it was released first, and the data that each stands for now: a component that was built then runs on.

use serde::{Deserialize, Serialize};

use super::error_template::{ErrorTemplate, RefusalWords};

/// How errors look, in one word.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorStyle {
    /// One object: `error`, with `reason_code` or `code`.
    #[default]
    Plain,
    /// A list under `errors`, with the codes of the OCI distribution specification.
    Registry,
}

/// What the word `registry` stands for.
#[derive(Deserialize)]
struct Registry {
    errors: ErrorTemplate,
    /// How a manifest is refused that is too large.
    manifest: RefusalWords,
}

impl ErrorStyle {
    /// The template that it stands for, and how what is over the limit `manifest` is refused by it.
    pub(super) fn stands_for(self) -> Result<(ErrorTemplate, Option<RefusalWords>), String> {
        match self {
            Self::Plain => Ok((ErrorTemplate::default(), None)),
            Self::Registry => {
                let registry: Registry =
                    serde_json::from_str(include_str!("registry.json")).map_err(|error| {
                        format!("the host's own words for registries cannot be read: {error}")
                    })?;
                Ok((registry.errors, Some(registry.manifest)))
            }
        }
    }
}
