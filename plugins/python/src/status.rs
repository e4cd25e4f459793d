//! The status of a project (PEP 792): active, archived, quarantined or deprecated.

use packhouse_sdk::Failure;
use serde::{Deserialize, Serialize};

/// A project's status and the reason for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) status: Marker,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// The statuses of PEP 792.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Marker {
    #[default]
    Active,
    /// The project accepts no more files.
    Archived,
    /// The project may be harmful. It offers no files and accepts no more.
    Quarantined,
    /// Another project should be used instead.
    Deprecated,
}

impl Status {
    /// Returns true if the project's files may be installed.
    pub(crate) fn offers_files(&self) -> bool {
        self.status != Marker::Quarantined
    }

    /// Refuses an upload if the status does not allow it.
    pub(crate) fn check_upload(&self, project: &str) -> Result<(), Failure> {
        let word = match self.status {
            Marker::Active | Marker::Deprecated => return Ok(()),
            Marker::Archived => "archived",
            Marker::Quarantined => "quarantined",
        };
        Err(Failure::denied(format!("The project {project} is {word} and accepts no more files")))
    }
}
