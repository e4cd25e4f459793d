//! A version on its way into a document, and the forms that documents have.

use crate::accept;
use crate::records::Version;
use serde_json::{Map, Value, json};

/// Which form of a packument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// What installing needs.
    Abbreviated,
    /// All of it.
    Full,
}

impl Form {
    /// As a client's `Accept` has it.
    pub(crate) fn wanted(accept: Option<&str>) -> Self {
        if accept::abbreviated(accept) { Self::Abbreviated } else { Self::Full }
    }

    /// The media type of a document in this form.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Abbreviated => accept::ABBREVIATED,
            Self::Full => "application/json",
        }
    }
}

/// A version on its way into a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// Manifests without `dist` and `deprecated`: objects that are not empty.
    pub(crate) abbreviated: String,
    pub(crate) full: String,
    /// An object without the tarball's address and the attestations.
    pub(crate) dist: String,
    pub(crate) deprecated: Option<String>,
    /// `dist.attestations`, but for their address.
    pub(crate) attestations: Option<Map<String, Value>>,
    /// When it was published, in ms since 1970; 0 where nobody says so.
    pub(crate) time: u64,
}

impl Piece {
    /// A stored version as packuments are made of it.
    pub(crate) fn of(version: Version, deprecated: Option<String>) -> Self {
        let Version { facts, dist, abbreviated, full } = version;
        let attestations = facts.provenance.map(|predicate| {
            Map::from_iter([("provenance".to_owned(), json!({"predicateType": predicate}))])
        });
        Self { abbreviated, full, dist, deprecated, attestations, time: facts.time }
    }
}
