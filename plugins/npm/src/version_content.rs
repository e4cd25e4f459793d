//! Contents of a version for a rendered document, and the forms of packuments.

use crate::accept;
use crate::records::VersionRecord;
use serde_json::{Map, Value, json};

/// The form of a packument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackumentForm {
    /// Only the members that an installation needs.
    Abbreviated,
    /// All members.
    Full,
}

impl PackumentForm {
    /// Returns the form that a client's `Accept` requests.
    pub(crate) fn requested(accept: Option<&str>) -> Self {
        if accept::prefers_abbreviated(accept) { Self::Abbreviated } else { Self::Full }
    }

    /// Returns the media type of a document in this form.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Abbreviated => accept::ABBREVIATED,
            Self::Full => "application/json",
        }
    }
}

/// Contents of a version for a rendered document.
#[derive(Clone, Debug, Default)]
pub(crate) struct VersionContent {
    /// Abbreviated manifest without `dist` and `deprecated`, as a JSON object that is not empty.
    pub(crate) abbreviated: String,
    /// Full manifest without `dist` and `deprecated`, as a JSON object that is not empty.
    pub(crate) full: String,
    /// `dist` as a JSON object, without the tarball's address and the attestations.
    pub(crate) dist: String,
    pub(crate) deprecated: Option<String>,
    /// `dist.attestations` without its `url`.
    pub(crate) attestations: Option<Map<String, Value>>,
    /// Publication time, in ms since 1970; 0 if it is unknown.
    pub(crate) time: u64,
}

impl VersionContent {
    /// Converts a stored version.
    pub(crate) fn of(version: VersionRecord, deprecated: Option<String>) -> Self {
        let VersionRecord { facts, dist, abbreviated, full } = version;
        let attestations = facts.provenance.map(|predicate| {
            Map::from_iter([("provenance".to_owned(), json!({"predicateType": predicate}))])
        });
        Self { abbreviated, full, dist, deprecated, attestations, time: facts.time }
    }
}
