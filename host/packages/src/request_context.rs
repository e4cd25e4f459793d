//! Facts about a request that the steps collect for error responses, the access log, metrics and
//! the audit log.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use packhouse_runtime::{Description, ErrorFormat};
use packhouse_store::{OrganizationId, RepositoryId};
use packhouse_wire::site::Site;

/// Facts about a request that the steps collect.
pub(crate) struct RequestContext {
    /// Id of the request in logs and responses.
    pub request_id: Arc<str>,
    pub peer: IpAddr,
    /// Error format of the request's format, if it is known yet.
    pub error_format: Arc<ErrorFormat>,
    /// True if a 401 contains the format's own challenge. Otherwise the challenge is `Basic`.
    pub own_challenge: bool,
    /// Scheme and host that the client used. Links begin with them if no public URL is configured.
    pub site: Option<Site>,
    /// URL with which generated links begin; empty until the organization is known.
    pub base_url: String,
    /// True if `base_url` comes from the client and the server does not know the site: the client
    /// may have invented it.
    pub follows_unknown_site: bool,
    /// Audience of ID tokens; empty until the organization is known.
    pub own_address: String,
    /// Name of the credential in logs. It never contains a part of the secret.
    pub credential: Option<Arc<str>>,
    /// Format of the request; `None` until it is known.
    pub format: Option<String>,
    /// Name of the credential's owner.
    pub caller: Option<Arc<str>>,
    pub organization: Option<OrganizationId>,
    /// Repository of the request; `None` until it is known.
    pub repository: Option<RepositoryId>,
}

impl RequestContext {
    /// Creates the context of a request about which nothing else is known.
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

    /// Switches to the error format of this description, or to the default one without a
    /// description.
    pub(crate) fn set_format(&mut self, description: Option<&Description>) {
        self.error_format =
            description.map_or_else(no_format, |description| Arc::clone(&description.error_format));
        self.own_challenge = true;
        self.format = description.map(|description| description.format.clone());
    }
}

static NO_FORMAT: LazyLock<Arc<ErrorFormat>> = LazyLock::new(Arc::default);

/// Returns the default error format, for requests whose format is not known.
pub(crate) fn no_format() -> Arc<ErrorFormat> {
    Arc::clone(&NO_FORMAT)
}

/// Reports whether this is the default error format.
pub(crate) fn is_no_format(error_format: &Arc<ErrorFormat>) -> bool {
    Arc::ptr_eq(error_format, &NO_FORMAT)
}
