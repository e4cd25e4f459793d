//! One call of a plugin: its input, and how it runs.

use std::sync::Arc;

use packhouse_store::{AuditEvent, Blob, TrashId};

use crate::package_bounds::PackageBounds;
use crate::request::{Action, RequestHead};
use crate::services::Services;
use crate::view::RepositoryView;

/// One part of a received form.
#[derive(Clone)]
pub struct Part {
    pub name: String,
    /// The file name, if the part has one.
    pub filename: Option<String>,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Blob,
}

/// Effect of a received body on an upload that lasts longer than a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Appended {
    pub upload: String,
    /// Number of bytes of this request that were appended; 0 if the offset did not match.
    pub received: u64,
}

/// Facts that the sender of a publish states about a file that another server served before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Moved {
    /// Time of publication on the other server, in ms since 1970. None if the sender does not know
    /// it. The plugin's clock shows this time. Versions that the plugin declares without a
    /// publication time get this one.
    pub published_at: Option<u64>,
}

/// Complete input of a call. Start from [`Call::new`] and fill in the rest.
#[derive(Clone)]
pub struct Call {
    pub head: Arc<RequestHead>,
    /// Action of the authorized intent. Storage handles allow only this.
    pub action: Action,
    /// Flag of the intent. The host pins blobs that the call looks up for the repository, so that
    /// the publish can leave them out.
    pub for_publish: bool,
    /// Absent for a request under a claim that names no repository.
    pub target: Option<RepositoryView>,
    /// Members of a group, or the repositories of [`Intent::also_read`](crate::Intent::also_read).
    pub others: Vec<RepositoryView>,
    pub body: Option<Blob>,
    pub parts: Vec<Part>,
    /// The data appended to an upload.
    pub appended: Option<Appended>,
    /// Services that this caller may use, such as upstream, identity and signing.
    pub services: Services,
    /// Audit event that is stored with each commit of a writing call. The host adds the versions
    /// that the commit shows or hides.
    pub audit: Option<AuditEvent>,
    /// For a deletion: the trash entry that holds what the commits change.
    pub trash: Option<TrashId>,
    /// Present for a publish of something that another server served before.
    pub moved: Option<Moved>,
    /// Packages that the commits may concern. None allows any.
    pub packages: Option<PackageBounds>,
}

impl Call {
    /// Creates a call without repository, body and services.
    pub fn new(head: Arc<RequestHead>, action: Action) -> Call {
        Call {
            head,
            action,
            for_publish: false,
            target: None,
            others: Vec::new(),
            body: None,
            parts: Vec::new(),
            appended: None,
            services: Services::default(),
            audit: None,
            trash: None,
            moved: None,
            packages: None,
        }
    }
}

/// The new state for [`Plugin::mark_version`](crate::Plugin::mark_version).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VersionState {
    /// `yanked`, `deprecated` or `withdrawn`. An empty string clears the state.
    pub state: String,
    /// Reason for people to read.
    pub reason: String,
}
