//! What a search finds, as cargo reads it and another registry tells it.

use serde::{Deserialize, Serialize};

/// What is found, as cargo reads it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) crates: Vec<FoundCrate>,
    pub(crate) meta: Meta,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FoundCrate {
    pub(crate) name: String,
    pub(crate) max_version: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) total: u64,
}
