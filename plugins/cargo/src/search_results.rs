//! The results of a search, in the JSON format that cargo reads and upstreams send.

use serde::{Deserialize, Serialize};

/// A page of results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SearchResults {
    pub(crate) crates: Vec<FoundCrate>,
    pub(crate) meta: SearchMeta,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FoundCrate {
    pub(crate) name: String,
    pub(crate) max_version: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SearchMeta {
    pub(crate) total: u64,
}
