//! The step identify: a request for a package with the caller that sent it, and with what the store has at its address. Whether
//! the caller may know of that is judged later.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{AuthorizationForm, Plugin};
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::credential::{self, Credential};
use crate::identify::{self, IdentityQuery, Known};
use crate::request_context::RequestContext;
use crate::resolve::RepositoryAddress;
use crate::shape::Refused;
use packhouse_app::App;

/// A request for a package whose organization is known.
pub(crate) struct ResolvedRequest<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// The organization that it is for.
    pub organization: OrganizationId,
    /// Where its path leads.
    pub address: RepositoryAddress,
    /// Its query.
    pub query: Vec<(String, String)>,
}

/// The same, once the credential and the repository were looked up.
pub(crate) struct IdentifiedRequest<'a> {
    /// The program.
    pub app: &'a Arc<App>,
    /// The request without its body.
    pub parts: &'a Parts,
    /// The organization that it is for.
    pub organization: OrganizationId,
    /// Where its path leads.
    pub address: RepositoryAddress,
    /// Its query.
    pub query: Vec<(String, String)>,
    /// Who asks, and what the store has at the address.
    pub known: Arc<Known>,
    /// Whether the credential came as a bearer.
    pub as_bearer: bool,
    /// The client's address.
    pub peer: IpAddr,
    /// The time at which the request is judged, in ms since 1970.
    pub now: i64,
}

/// Identifies the caller. 429 for a password that was guessed at too often, 503 if the store cannot be read; a credential that
/// nobody knows is refused by a later step.
pub(crate) async fn identify_caller<'a>(
    resolved: ResolvedRequest<'a>,
    context: &mut RequestContext,
) -> Result<IdentifiedRequest<'a>, Refused> {
    let ResolvedRequest { app, parts, organization, address, query } = resolved;
    let presented = Credential::read(&parts.headers);
    let as_bearer = matches!(presented, Credential::Bearer(_));
    let form = presented.form();
    let description = address.claim.as_ref().map(|claim| claim.plugin.description());
    let (repository, peer) = (address.name.as_deref().unwrap_or_default(), context.peer);
    let asked = |credential| IdentityQuery {
        organization,
        repository,
        credential,
        peer,
        bearer_format: description.filter(|it| it.token_service.is_some()).map(|it| it.format.as_str()),
    };
    let known = match description {
        Some(description) => identify::identify(app, asked(presented.taken_by(description))).await?,
        None => {
            let known = identify::identify(app, asked(presented)).await?;
            // Only now the format is known. A credential in a form that it does not take is one that nobody knows.
            let counts = form.is_none_or(|form| takes(app, &known, form));
            if counts { known } else { identify::identify(app, asked(Credential::Unreadable)).await? }
        }
    };
    let known = Arc::new(known);
    context.credential.clone_from(&known.credential);
    context.caller.clone_from(&known.caller);
    let now = packhouse_store::now_ms();
    Ok(IdentifiedRequest { app, parts, organization, address, query, known, as_bearer, peer, now })
}

/// Whether credentials of this form count in the repository that was looked up.
fn takes(app: &App, known: &Known, form: AuthorizationForm) -> bool {
    let plugin = known.facts.repository.as_ref().and_then(|row| app.runtime.plugin(&row.format));
    credential::counts(form, plugin.as_ref().map(|plugin| plugin.description()))
}

impl IdentifiedRequest<'_> {
    /// The repository at the address. A claim leads to repositories of its own format alone.
    pub(crate) fn repository(&self) -> Option<&RepositoryRow> {
        let of_claim = |row: &&RepositoryRow| {
            let claim = self.address.claim.as_ref();
            claim.is_none_or(|claim| claim.plugin.description().format == row.format)
        };
        self.known.facts.repository.as_ref().filter(of_claim)
    }

    /// The plugin of the claim, or else of the repository's format; none if that is not loaded.
    pub(crate) fn plugin(&self) -> Option<Arc<Plugin>> {
        match &self.address.claim {
            Some(claim) => Some(Arc::clone(&claim.plugin)),
            None => self.app.runtime.plugin(&self.repository()?.format),
        }
    }
}
