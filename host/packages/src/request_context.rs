//! What is found out about a request on its way, for the shape of a refusal, its line in the log, the metrics and the audit log.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use packhouse_runtime::{Description, ErrorFormat};
use packhouse_store::{OrganizationId, RepositoryId};
use packhouse_wire::site::Site;

/// See the module.
pub(crate) struct RequestContext {
    /// Names the request in logs and answers.
    pub request_id: Arc<str>,
    /// The client's address.
    pub peer: IpAddr,
    /// How the format's refusals look, if one is known by now.
    pub error_format: Arc<ErrorFormat>,
    /// Whether a 401 asks for what the format says; else it asks for `Basic`.
    pub own_challenge: bool,
    /// Where the request was made to, which links follow while no public address is set.
    pub site: Option<Site>,
    /// What links start with; empty until the organization was looked for.
    pub base_url: String,
    /// Whether that follows a site of the request that the server does not know: a client may have made it up.
    pub follows_unknown_site: bool,
    /// The address for which ID tokens are made; empty until the organization was looked for.
    pub own_address: String,
    /// Names the credential; never a part of it.
    pub credential: Option<Arc<str>>,
    /// The format that the request turned out to be about.
    pub format: Option<String>,
    /// Whose the credential is.
    pub caller: Option<Arc<str>>,
    /// The organization that the request is for.
    pub organization: Option<OrganizationId>,
    /// The repository that the request turned out to be about.
    pub repository: Option<RepositoryId>,
}

impl RequestContext {
    /// A request of which nothing more is known.
    pub(crate) fn new(
        request_id: Arc<str>,
        peer: IpAddr,
        site: Option<Site>,
        error_format: Arc<ErrorFormat>,
    ) -> Self {
        Self {
            request_id,
            peer,
            error_format,
            own_challenge: false,
            site,
            base_url: String::new(),
            follows_unknown_site: false,
            own_address: String::new(),
            credential: None,
            format: None,
            caller: None,
            organization: None,
            repository: None,
        }
    }

    /// Refusals look as the format's description wants them from here on.
    pub(crate) fn set_format(&mut self, description: Option<&Description>) {
        self.error_format =
            description.map_or_else(no_format, |description| Arc::clone(&description.error_format));
        self.own_challenge = true;
        self.format = description.map(|description| description.format.clone());
    }
}

static NO_FORMAT: LazyLock<Arc<ErrorFormat>> = LazyLock::new(Arc::default);

/// How refusals look where no format is known.
pub(crate) fn no_format() -> Arc<ErrorFormat> {
    Arc::clone(&NO_FORMAT)
}

/// Whether refusals look so because no format is known.
pub(crate) fn is_no_format(error_format: &Arc<ErrorFormat>) -> bool {
    Arc::ptr_eq(error_format, &NO_FORMAT)
}
