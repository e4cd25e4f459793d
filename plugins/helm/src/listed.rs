//! Charts as an index lists them.

use crate::chart::Chart;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A version as an index lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Listed {
    pub(crate) chart: Chart,
    /// RFC 3339, as it is written; empty where nobody says.
    pub(crate) created: String,
    /// SHA-256 in hex.
    pub(crate) digest: Option<String>,
    /// Where an upstream has it, absolute; empty in a hosted repository.
    pub(crate) url: String,
}

/// Versions by the name of their chart.
pub(crate) type Listing = BTreeMap<String, Vec<Listed>>;
