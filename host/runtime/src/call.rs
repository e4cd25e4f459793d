//! One call of a plugin: what it is given, and how it is run.

use std::sync::Arc;

use packhouse_store::{AuditEvent, Blob, TrashId};

use crate::package_bounds::PackageBounds;
use crate::request::{Action, RequestHead};
use crate::services::Services;
use crate::view::RepositoryView;

/// One part of a received form.
#[derive(Clone)]
pub struct Part {
    /// Of its field.
    pub name: String,
    /// Where it has one.
    pub filename: Option<String>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its bytes, staged.
    pub body: Blob,
}

/// What a received body brought to an upload that lasts longer than a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Appended {
    /// The upload in the target.
    pub upload: String,
    /// Bytes that this request brought; 0 where the offset did not fit.
    pub received: u64,
}

/// What the sender of a publish says of a file that another server served before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Moved {
    /// When the file was published there, in ms since 1970; none where the sender does not know. The plugin's clock shows this time, and
    /// it is the time of publication of versions that the plugin shows without one.
    pub published_at: Option<u64>,
}

/// Everything that a call is given. Start from [`Call::new`] and fill in what there is.
#[derive(Clone)]
pub struct Call {
    /// The request without its body.
    pub head: Arc<RequestHead>,
    /// The intent's, once it was authorised: storage handles match it.
    pub action: Action,
    /// The intent's: blobs that are looked for are leased to the repository, so that the publish may leave them out.
    pub for_publish: bool,
    /// Absent for a request under a claim that names no repository.
    pub target: Option<RepositoryView>,
    /// A group's members, or those of [`Intent::also_read`](crate::Intent::also_read).
    pub others: Vec<RepositoryView>,
    /// The whole body.
    pub body: Option<Blob>,
    /// The parts of a form.
    pub parts: Vec<Part>,
    /// What was added to an upload.
    pub appended: Option<Appended>,
    /// Upstream, identity and signing, as far as this caller may use them.
    pub services: Services,
    /// What is remembered with each commit of a call that writes; what was shown and hidden is added to it.
    pub audit: Option<AuditEvent>,
    /// Of a deletion: the entry of the trash that keeps what its commits change.
    pub trash: Option<TrashId>,
    /// Present for a publish of something that another server served before.
    pub moved: Option<Moved>,
    /// Which packages its commits may be about; none: any.
    pub packages: Option<PackageBounds>,
    /// The time that the plugin is told, in ms since 1970; none is that at which it asks.
    pub now: Option<u64>,
}

impl Call {
    /// A call with no repository, no body and no services.
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
            now: None,
        }
    }
}

/// For [`Plugin::mark_version`](crate::Plugin::mark_version).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VersionState {
    /// `yanked`, `deprecated`, `withdrawn`; empty takes it back.
    pub state: String,
    /// Why, for people.
    pub reason: String,
}
