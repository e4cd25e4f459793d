//! What a project says of itself as a whole (PEP 792): active, archived, quarantined, deprecated.

use packhouse_sdk::Failure;
use serde::{Deserialize, Serialize};

/// A project's status and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) status: Marker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// PEP 792's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Marker {
    #[default]
    Active,
    /// Nothing more is published.
    Archived,
    /// It may be harmful: nothing is offered, and nothing published.
    Quarantined,
    /// Another should be used.
    Deprecated,
}

impl Status {
    /// Whether the project's files may be installed.
    pub(crate) fn offers_files(&self) -> bool {
        self.status != Marker::Quarantined
    }

    /// Refuses an upload to a project that takes none.
    pub(crate) fn check_upload(&self, project: &str) -> Result<(), Failure> {
        let word = match self.status {
            Marker::Active | Marker::Deprecated => return Ok(()),
            Marker::Archived => "archived",
            Marker::Quarantined => "quarantined",
        };
        Err(Failure::denied(format!("The project {project} is {word} and takes no more files")))
    }
}
