//! The charts and versions of an index.

use crate::chart::Chart;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A version of a chart, as an index lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ListedChart {
    pub(crate) chart: Chart,
    /// Publication time as RFC 3339 text. A proxy takes the text unchanged from the upstream's
    /// index. Empty if that index does not state the time.
    pub(crate) created: String,
    /// SHA-256 in hex.
    pub(crate) digest: Option<String>,
    /// Absolute URL of the file at the upstream; empty in a hosted repository.
    pub(crate) url: String,
}

/// Versions by the name of their chart.
pub(crate) type ChartListing = BTreeMap<String, Vec<ListedChart>>;
