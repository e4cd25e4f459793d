//! The step identify: a request for a package with the caller that sent it, and with what the store has at its address. Whether
//! the caller may know of that is judged later.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{AuthorizationForm, Serving};
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::access_request as access;
use crate::credential::{self, PresentedCredential};
use crate::error_response::HttpError;
use crate::identify::{self, IdentityQuery, Principal};
use crate::request_context::RequestContext;
use crate::resolve::RepositoryAddress;
use packhouse_app::App;
use packhouse_identity::access::{AccessAction, is_stranger};
use packhouse_wire::catalogue;

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
    pub principal: Arc<Principal>,
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
) -> Result<IdentifiedRequest<'a>, HttpError> {
    let presented = PresentedCredential::read(&resolved.parts.headers);
    let as_bearer = matches!(presented, PresentedCredential::Bearer(_));
    let principal = Arc::new(look_up(&resolved, presented, context).await?);
    context.credential.clone_from(&principal.credential);
    context.caller.clone_from(&principal.caller);
    let ResolvedRequest { app, parts, organization, address, query } = resolved;
    let (peer, now) = (context.peer, app.store.now_ms());
    Ok(IdentifiedRequest { app, parts, organization, address, query, principal, as_bearer, peer, now })
}

/// Looks up the credential and the repository. A credential in a form that the format does not take is one that nobody knows. Below a
/// claim the format is known before; at a repository's own address it is known once the repository was found, and only then a bearer of
/// the format's token service can be read.
async fn look_up(
    resolved: &ResolvedRequest<'_>,
    presented: PresentedCredential,
    context: &RequestContext,
) -> Result<Principal, HttpError> {
    let ResolvedRequest { app, organization, address, .. } = resolved;
    let query = |credential, bearer_format| IdentityQuery {
        organization: *organization,
        repository: address.name.as_deref().unwrap_or_default(),
        credential,
        peer: context.peer,
        bearer_format,
        own_address: &context.own_address,
        request_id: &context.request_id,
    };
    if let Some(claim) = &address.claim {
        let description = claim.plugin.description();
        let bearer_format = description.token_service.as_ref().map(|_| description.format.as_str());
        return identify::identify(app, query(presented.taken_by(description), bearer_format)).await;
    }
    let form = presented.form();
    let bearer = presented.is_of_token_service().then(|| presented.clone());
    let principal = identify::identify(app, query(presented, None)).await?;
    if form.is_some_and(|form| !takes(app, &principal, form)) {
        return identify::identify(app, query(PresentedCredential::Unreadable, None)).await;
    }
    let facts = Arc::clone(&principal.facts);
    let (Some(bearer), Some(row)) = (bearer, &facts.repository) else { return Ok(principal) };
    let by_bearer = identify::identify(app, query(bearer, Some(row.format.as_str()))).await?;
    // At a name without a repository no bearer is read. A stranger, and who is told that nothing is here, must not see the difference.
    let (now, current) = (app.store.now_ms(), app.runtime.current());
    let rules = access::rules(current.serving(row.id, &row.format).map(|plugin| plugin.description()));
    let read = AccessAction::Read { for_publish: true };
    let judged = access::authorize(&by_bearer.presented, &rules, read, Some(access::facts(row, true)), now);
    let is_absent = judged.is_err_and(|refused| refused.is_of(&catalogue::NOT_FOUND));
    let is_hidden = !row.public && (is_absent || is_stranger(&by_bearer.presented, now));
    Ok(if is_hidden { principal } else { by_bearer })
}

/// Whether credentials of this form count in the repository that was looked up. Until its component is compiled, any does: what it takes
/// is not known, and nothing is served there.
fn takes(app: &App, principal: &Principal, form: AuthorizationForm) -> bool {
    let current = app.runtime.current();
    let row = principal.facts.repository.as_ref();
    let plugin = row.and_then(|row| current.serving(row.id, &row.format));
    let is_awaited = plugin.is_none() && row.is_some_and(|row| current.awaits(&row.format));
    is_awaited || credential::counts(form, plugin.map(|plugin| plugin.description()))
}

impl IdentifiedRequest<'_> {
    /// The repository at the address. A claim leads to repositories of its own format alone.
    pub(crate) fn repository(&self) -> Option<&RepositoryRow> {
        let of_claim = |row: &&RepositoryRow| {
            let claim = self.address.claim.as_ref();
            claim.is_none_or(|claim| claim.plugin.description().format == row.format)
        };
        self.principal.facts.repository.as_ref().filter(of_claim)
    }

    /// The plugin that serves the caller at the repository, or else that of the claim; none if the format is not loaded.
    pub(crate) fn serving(&self) -> Option<Serving> {
        let current = self.app.runtime.current();
        // Who shows no credential is told from others by the address.
        let client = || match &self.principal.credential {
            Some(credential) => credential.as_ref().to_owned(),
            None => self.peer.to_string(),
        };
        let of_repository = |row: &RepositoryRow| current.serving_client(row.id, &row.format, client);
        let claim = self.address.claim.as_ref();
        let of_claim = || claim.map(|claim| Serving { plugin: Arc::clone(&claim.plugin), trial: None });
        self.repository().and_then(of_repository).or_else(of_claim)
    }
}
