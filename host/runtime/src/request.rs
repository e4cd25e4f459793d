//! A request as a plugin sees it, and what the plugin says it would do.

use std::sync::Arc;

use packhouse_store::{Algorithm, RepositoryId};

use crate::aside::Aside;

/// One request without its body. Its parts are as wit/v0.1/http.wit says of `request`; the server has resolved the repository,
/// taken credentials out, and left only the headers that the description asks for.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// In upper case.
    pub method: String,
    /// The name of the description's claim that matched.
    pub claim: Option<String>,
    /// Below the repository's address, percent-decoded once, one item a segment.
    pub path: Arc<[String]>,
    /// In the order they came, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The public address that `path` is below, without a slash at its end.
    pub address: String,
    /// The caller's name as it may be shown; none for anonymous.
    pub caller: Option<Arc<str>>,
    /// For logs; a plugin does not see it.
    pub request_id: Arc<str>,
    /// The repository that it is about, for recordings; a plugin does not see it.
    pub repository: Option<RepositoryId>,
    /// Whether the calls for it are aside of those that clients wait for; a plugin does not see it.
    pub aside: Option<Arc<Aside>>,
}

/// What a request does, told by the plugin and judged by the host.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
pub enum Action {
    /// Needs no credential.
    Open,
    /// Reads.
    Read,
    /// Adds or changes.
    Publish,
    /// Removes.
    Delete,
}

impl Action {
    /// Whether the target may be changed.
    pub fn writes(self) -> bool {
        matches!(self, Action::Publish | Action::Delete)
    }
}

/// How the request's body is wanted. Limits are in bytes, the operator's limit for the plugin already applied.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum BodyPlan {
    /// Not read.
    #[default]
    None,
    /// As one blob.
    Body {
        /// At most this many bytes.
        limit: u64,
    },
    /// As the parts of a form.
    Parts {
        /// At most this many bytes together.
        limit: u64,
    },
    /// At the end of an upload of the target.
    Append {
        /// Name of the upload.
        upload: String,
        /// What it must already hold.
        offset: Option<u64>,
        /// At most this many bytes.
        limit: u64,
    },
}

impl BodyPlan {
    /// The same with the smaller of both limits.
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

/// What the request would do: the answer of [`Plugin::route`](crate::Plugin::route).
#[derive(Clone, Debug)]
pub struct Intent {
    /// What must be allowed.
    pub action: Action,
    /// The package, image or file it is about.
    pub subject: Option<String>,
    /// How the body is wanted.
    pub body: BodyPlan,
    /// The limit of the description's that it is under, by its name, in place of that of a file.
    pub limit: Option<String>,
    /// Digests besides SHA-256, to be computed while the body comes in.
    pub digests: Vec<Algorithm>,
    /// Names of further repositories that the request reads from.
    pub also_read: Vec<String>,
    /// Whether [`Plugin::check`](crate::Plugin::check) is to be asked before the body is received.
    pub check: bool,
    /// Whether a credential that can only write may do this reading.
    pub for_publish: bool,
    /// Names of the packages that it is about.
    pub packages: Vec<String>,
    /// Whether it is about none, or about packages that the plugin asks
    /// [`UpstreamService::withheld`](crate::UpstreamService::withheld) of.
    pub many_packages: bool,
    /// Whether the plugin looked at who asks: another caller's intent may be another then.
    pub for_caller: bool,
    /// What of the request the plugin looked at to tell it.
    pub looked: Looked,
}

/// How much of a request a plugin looked at, each with what is before it: what comes of it is the same for every request that differs
/// in the rest alone. Method, claim, path and address count as looked at.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Looked {
    /// Neither its headers nor its query.
    #[default]
    AtPath,
    /// Its headers.
    AtHeaders,
    /// Its query.
    AtQuery,
}
