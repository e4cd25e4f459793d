//! What is found out about a request on its way, for the shape of a refusal, its line in the log, the metrics and the audit log.

use std::net::IpAddr;

use packhouse_runtime::{Challenge, Description, ErrorStyle};
use packhouse_store::OrganizationId;

/// See the module.
pub(crate) struct RequestContext {
    /// Names the request in logs and answers.
    pub request_id: String,
    /// The client's address.
    pub peer: IpAddr,
    /// How a refusal looks.
    pub style: ErrorStyle,
    /// The path of the token service, if a refusal's challenge is a bearer's.
    pub token_service: Option<String>,
    /// What links start with; empty until the organization was looked for.
    pub base_url: String,
    /// Names the credential; never a part of it.
    pub credential: Option<String>,
    /// The format that the request turned out to be about.
    pub format: Option<String>,
    /// Whose the credential is.
    pub caller: Option<String>,
    /// The organization that the request is for.
    pub organization: Option<OrganizationId>,
}

impl RequestContext {
    /// A request of which nothing more is known.
    pub(crate) fn new(request_id: String, peer: IpAddr, style: ErrorStyle) -> Self {
        Self {
            request_id,
            peer,
            style,
            token_service: None,
            base_url: String::new(),
            credential: None,
            format: None,
            caller: None,
            organization: None,
        }
    }

    /// Refusals look as the format's description wants them from here on.
    pub(crate) fn set_format(&mut self, description: Option<&Description>) {
        self.style = description.map_or(ErrorStyle::Plain, |description| description.error_style);
        self.format = description.map(|description| description.format.clone());
        let bearer = description.filter(|description| description.challenge == Challenge::Bearer);
        self.token_service =
            bearer.and_then(|description| Some(description.token_service.as_ref()?.path.clone()));
    }
}
