//! A request as a plugin receives it, and the intent that the plugin states for it.

use std::sync::Arc;

use packhouse_store::{Algorithm, RepositoryId};

/// One request without its body. wit/v0.1/http.wit documents its parts under `request`. The server
/// has resolved the repository, removed credentials, and kept only the headers that the description
/// requests.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// HTTP method in upper case.
    pub method: String,
    /// Name of the description's claim that matched.
    pub claim: Option<String>,
    /// Path below the repository's address, percent-decoded once, one item for each segment.
    pub path: Arc<[String]>,
    /// Query parameters in their order, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Headers with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Public address that `path` is below, without a trailing slash.
    pub address: String,
    /// Display name of the caller. None for an anonymous caller.
    pub caller: Option<Arc<str>>,
    /// Request id for logs, hidden from plugins.
    pub request_id: Arc<str>,
    /// Repository of the request, for recordings. Hidden from plugins.
    pub repository: Option<RepositoryId>,
}

/// Effect of a request, stated by the plugin and authorized by the host.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
pub enum Action {
    Open,
    Read,
    Publish,
    Delete,
}

impl Action {
    /// Returns true if the target may be changed.
    pub fn writes(self) -> bool {
        matches!(self, Action::Publish | Action::Delete)
    }
}

/// How the host should receive the request's body. Limits are in bytes, and already include the
/// operator's limit for the plugin.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum BodyPlan {
    #[default]
    None,
    /// The body becomes one blob.
    Body {
        /// Most bytes of the body.
        limit: u64,
    },
    /// The body becomes the parts of a form.
    Parts {
        /// Most bytes of all parts together.
        limit: u64,
    },
    /// The body is appended to an upload of the target.
    Append {
        upload: String,
        /// Number of bytes that the upload must already hold.
        offset: Option<u64>,
        /// Most bytes of the body.
        limit: u64,
    },
}

impl BodyPlan {
    /// Lowers the limit to `max`.
    pub(crate) fn at_most(self, max: Option<u64>) -> BodyPlan {
        let least = |limit: u64| max.map_or(limit, |max| limit.min(max));
        match self {
            BodyPlan::None => BodyPlan::None,
            BodyPlan::Body { limit } => BodyPlan::Body { limit: least(limit) },
            BodyPlan::Parts { limit } => BodyPlan::Parts { limit: least(limit) },
            BodyPlan::Append { upload, offset, limit } => {
                BodyPlan::Append { upload, offset, limit: least(limit) }
            }
        }
    }
}

/// Effect of a request, as [`Plugin::route`](crate::Plugin::route) states it.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Action that must be allowed.
    pub action: Action,
    /// The package, image or file that the request is about.
    pub subject: Option<String>,
    pub body: BodyPlan,
    /// Name of a limit in the description that replaces the limit of a file.
    pub limit: Option<String>,
    /// Digests in addition to SHA-256, computed while the body arrives.
    pub digests: Vec<Algorithm>,
    /// Names of further repositories that the request reads from.
    pub also_read: Vec<String>,
    /// True if [`Plugin::check`](crate::Plugin::check) must run before the body is received.
    pub check: bool,
    /// True if a credential with only the right to write may make this read.
    pub for_publish: bool,
    /// Names of the packages that the request is about.
    pub packages: Vec<String>,
    /// True if the request is about no package, or about packages that the plugin checks with
    /// [`UpstreamService::withheld`](crate::UpstreamService::withheld).
    pub many_packages: bool,
    /// True if the plugin read the caller. Then the intent may differ for another caller.
    pub for_caller: bool,
    /// Parts of the request that the plugin read for the intent.
    pub looked: Looked,
}

/// Parts of a request that a plugin read; each value includes the ones before it. The plugin's
/// result is the same for requests that differ only in unread parts. Method, claim, path and
/// address always count as read.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Looked {
    /// Neither the headers nor the query.
    #[default]
    AtPath,
    AtHeaders,
    AtQuery,
}
