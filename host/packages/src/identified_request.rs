//! The step identify: finds the caller, and the repository at the request's address. Later steps
//! decide whether the caller may learn that the repository exists.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use packhouse_runtime::{AuthorizationForm, Plugin};
use packhouse_store::{OrganizationId, RepositoryRow};

use crate::access_request as access;
use crate::credential::{self, PresentedCredential};
use crate::error_response::HttpError;
use crate::identify::{self, IdentityQuery, Principal};
use crate::request_context::RequestContext;
use crate::resolve::RepositoryAddress;
use packhouse_app::App;
use packhouse_identity::access::{AccessAction, is_unauthenticated};
use packhouse_wire::catalogue;

/// A package request whose organization is known.
pub(crate) struct ResolvedRequest<'a> {
    pub app: &'a Arc<App>,
    pub parts: &'a Parts,
    pub organization: OrganizationId,
    pub address: RepositoryAddress,
    pub query: Vec<(String, String)>,
}

/// A package request whose credential and repository the server has looked up.
pub(crate) struct IdentifiedRequest<'a> {
    pub app: &'a Arc<App>,
    pub parts: &'a Parts,
    pub organization: OrganizationId,
    pub address: RepositoryAddress,
    pub query: Vec<(String, String)>,
    /// The caller. It also contains the repository at the address.
    pub principal: Arc<Principal>,
    /// True if the client sent the credential as `Bearer`.
    pub as_bearer: bool,
    pub peer: IpAddr,
    /// Time for which the request is judged, in ms since 1970.
    pub now: i64,
}

/// Identifies the caller. Fails with 429 after too many wrong passwords, and with 503 if the store
/// cannot be read. This step accepts unknown credentials; a later step refuses them.
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

/// Looks up the credential and the repository. If the format does not accept the credential's form,
/// the credential is treated as unknown. Below a claim, the format is known before the look-up. At
/// a repository's own address, the format is known only after the look-up. Only then can this
/// function read a bearer token of the format's token service.
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
    // Bearer tokens are not read for missing repositories. A caller without access must get the
    // same status, 401 or 404, for a private repository as for a missing one.
    let (now, current) = (app.store.now_ms(), app.runtime.current());
    let rules = access::rules(current.serving(row.id, &row.format).map(|plugin| plugin.description()));
    let read = AccessAction::Read { for_publish: true };
    let judged = access::authorize(&by_bearer.presented, &rules, read, Some(access::facts(row, true)), now);
    let is_absent = judged.is_err_and(|refused| refused.is_of(&catalogue::NOT_FOUND));
    let is_hidden = !row.public && (is_absent || is_unauthenticated(&by_bearer.presented, now));
    Ok(if is_hidden { principal } else { by_bearer })
}

/// Reports whether the repository that was looked up accepts credentials of this form. While its
/// component is being compiled, the accepted forms are not known. Every form is accepted then,
/// because the server does not serve the repository yet.
fn takes(app: &App, principal: &Principal, form: AuthorizationForm) -> bool {
    let current = app.runtime.current();
    let row = principal.facts.repository.as_ref();
    let plugin = row.and_then(|row| current.serving(row.id, &row.format));
    let is_awaited = plugin.is_none() && row.is_some_and(|row| current.awaits(&row.format));
    is_awaited || credential::counts(form, plugin.map(|plugin| plugin.description()))
}

impl IdentifiedRequest<'_> {
    /// Returns the repository at the address. A claim leads only to repositories of its own format.
    pub(crate) fn repository(&self) -> Option<&RepositoryRow> {
        let of_claim = |row: &&RepositoryRow| {
            let claim = self.address.claim.as_ref();
            claim.is_none_or(|claim| claim.plugin.description().format == row.format)
        };
        self.principal.facts.repository.as_ref().filter(of_claim)
    }

    /// Returns the plugin that serves the repository to the caller, or else the plugin of the
    /// claim. Returns `None` if the format is not loaded.
    pub(crate) fn serving(&self) -> Option<Arc<Plugin>> {
        let current = self.app.runtime.current();
        let of_repository = |row: &RepositoryRow| current.serving(row.id, &row.format).cloned();
        let of_claim = || self.address.claim.as_ref().map(|claim| Arc::clone(&claim.plugin));
        self.repository().and_then(of_repository).or_else(of_claim)
    }
}
