//! Handles callers without an accepted credential at a repository that is not public. The response
//! depends only on the request. It is the same for missing repositories as for every existing one,
//! whatever its format, kind and state. Below a claim, the path determines the format, and the
//! claim's plugin decides.
//!
//! If a format opens a request to everyone, such as the start of a sign-in, the server serves it at
//! every name.

use std::sync::Arc;

use http::Method;
use packhouse_runtime::{Intent, Plugin, RequestHead};

use crate::access_request as access;
use crate::error_response::{ChallengeError, HttpError};
use crate::find_plugin::encoded_slash;
use crate::head::{self, HeadSource};
use crate::identified_request::IdentifiedRequest;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};
use crate::request_context::RequestContext;
use crate::route::call_route;
use packhouse_identity::access::{
    self as access_rules, AccessAction, ResolvedCredential, is_unauthenticated,
};
use packhouse_wire::catalogue;

/// A plugin that accepts the request, with its intent.
struct RoutedPlugin {
    plugin: Arc<Plugin>,
    head: Arc<RequestHead>,
    intent: Intent,
}

/// A request without an accepted credential.
struct UnauthenticatedRequest<'a> {
    identified: &'a IdentifiedRequest<'a>,
    base_url: &'a str,
    request_id: &'a Arc<str>,
}

/// Refuses an unauthenticated request unless a format opens it to everyone. If only a format other
/// than the repository's opens the request, returns the request with an undisclosed repository.
/// Returns `None` for an authenticated caller, and for a request that the repository's own format
/// opens. Later steps serve both like all other requests.
pub(crate) async fn try_public_route<'a>(
    identified: &'a IdentifiedRequest<'_>,
    context: &mut RequestContext,
) -> Result<Option<RepositoryRequest<'a>>, HttpError> {
    let repository = identified.repository();
    let public = repository.is_some_and(|row| row.public);
    let presented = &identified.principal.presented;
    if identified.address.claim.is_some() || public || !is_unauthenticated(presented, identified.now) {
        return Ok(None);
    }
    Box::pin(route_unauthenticated(identified, context)).await
}

async fn route_unauthenticated<'a>(
    identified: &'a IdentifiedRequest<'_>,
    context: &mut RequestContext,
) -> Result<Option<RepositoryRequest<'a>>, HttpError> {
    let (repository, principal) = (identified.repository(), &identified.principal);
    let (base_url, request_id) = (context.base_url.as_str(), &context.request_id);
    let request = UnauthenticatedRequest { identified, base_url, request_id };
    if !request.accepts_path().await? {
        return Err(encoded_slash());
    }
    let Some(RoutedPlugin { plugin, head, intent }) = request.find_public_route().await? else {
        return Err(request.refusal().await);
    };
    if repository.is_some_and(|row| row.format == plugin.description().format) {
        return Ok(None);
    }
    context.error_format = Arc::clone(&plugin.description().error_format);
    let name = identified.address.name.as_deref().unwrap_or_default();
    Ok(Some(RepositoryRequest {
        app: identified.app,
        parts: identified.parts,
        organization: identified.organization,
        repository: Some(NamedRepository::Undisclosed { name, intent: Arc::new(intent) }),
        members: Vec::new(),
        plugin,
        scope_template: None,
        principal,
        peer: identified.peer,
        head,
        now: identified.now,
    }))
}

impl UnauthenticatedRequest<'_> {
    /// Returns the plugin that opens this request to everyone, if any. Formats that declare their
    /// open requests are considered at every name, other formats only at their own repositories.
    /// The repository's own format takes precedence.
    async fn find_public_route(&self) -> Result<Option<RoutedPlugin>, HttpError> {
        let IdentifiedRequest { app, parts, address, principal, .. } = self.identified;
        let own = principal.facts.repository.as_ref().map(|row| row.format.as_str());
        let is_candidate = |plugin: &&Arc<Plugin>| {
            let description = plugin.description();
            let undeclared = description.open_requests.is_none() && own == Some(description.format.as_str());
            undeclared || description.may_open(parts.method.as_str(), &address.path)
        };
        let current = app.runtime.current();
        let mut plugins: Vec<&Arc<Plugin>> = current.plugins().iter().filter(is_candidate).collect();
        plugins.sort_by_key(|plugin| own != Some(plugin.description().format.as_str()));
        let routed = self.routed(&plugins).await?;
        Ok(routed.into_iter().find(|routed| access::required_action(&routed.intent) == AccessAction::Open))
    }

    /// Reports whether any format accepts the path. An encoded slash is allowed only if an enabled
    /// format accepts it.
    async fn accepts_path(&self) -> Result<bool, HttpError> {
        if !self.identified.address.encoded_slash {
            return Ok(true);
        }
        let current = self.identified.app.runtime.current();
        let plugins = current.plugins().iter();
        let plugins: Vec<_> = plugins.filter(|plugin| plugin.description().encoded_slash).collect();
        Ok(!self.routed(&plugins).await?.is_empty())
    }

    /// Returns the refusal, which is usually 401. For an invalid bearer token, it is 404 if an
    /// enabled format serves this path and declares that status.
    ///
    /// The refusal is 503 if a format that is still being compiled may open the request or accept
    /// the credential. A read without any credential gets 401 even then. Many clients begin in this
    /// way, and send their credential after the challenge.
    async fn refusal(&self) -> HttpError {
        let IdentifiedRequest { app, parts, principal, .. } = self.identified;
        let shows_nothing = principal.presented == ResolvedCredential::Nothing;
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let asks_to_be_challenged = shows_nothing && reads;
        if !app.runtime.is_whole() && !asks_to_be_challenged {
            return HttpError::of(&catalogue::SERVER_STARTING);
        }
        match self.refused().await {
            Ok(refused) | Err(refused) => refused,
        }
    }

    async fn refused(&self) -> Result<HttpError, HttpError> {
        let IdentifiedRequest { principal, now, as_bearer, .. } = self.identified;
        let challenge_error = ChallengeError::of(&principal.bearer_scope, *as_bearer, false);
        if principal.presented == ResolvedCredential::Nothing {
            return Ok(HttpError::of(&catalogue::UNAUTHORIZED).with_challenge(None, challenge_error));
        }
        let hidden = *as_bearer && self.is_hidden().await?;
        let row = if hidden { &catalogue::NOT_FOUND } else { &catalogue::UNAUTHORIZED };
        let sentence = access_rules::ended(&principal.presented, *now).unwrap_or(row.sentence);
        Ok(HttpError::of(row).with_message(sentence).of_credential().with_challenge(None, challenge_error))
    }

    async fn is_hidden(&self) -> Result<bool, HttpError> {
        let hides = |plugin: &&Arc<Plugin>| {
            let description = plugin.description();
            [description.refused_read_status, description.refused_write_status].contains(&404)
        };
        let current = self.identified.app.runtime.current();
        let plugins = current.plugins().iter();
        let plugins: Vec<&Arc<Plugin>> = plugins.filter(hides).collect();
        let routed = self.routed(&plugins).await?;
        Ok(routed.iter().any(|RoutedPlugin { plugin, intent, .. }| {
            let description = plugin.description();
            let status = match access::required_action(intent) {
                AccessAction::Read { for_publish: false } => description.refused_read_status,
                _ => description.refused_write_status,
            };
            status == 404
        }))
    }

    /// Returns those of the plugins that are enabled and accept the request, each with its own view
    /// of the request.
    async fn routed(&self, plugins: &[&Arc<Plugin>]) -> Result<Vec<RoutedPlugin>, HttpError> {
        let mut routed = Vec::new();
        if plugins.is_empty() {
            return Ok(routed);
        }
        let IdentifiedRequest { app, organization, address, .. } = self.identified;
        let switched = app.store.formats_enabled(*organization).await?;
        for plugin in plugins {
            let description = plugin.description();
            let switch = switched.iter().find(|(format, _)| *format == description.format);
            let on = app.enabled(&description.format, switch.map(|(_, on)| *on));
            if !on || (address.encoded_slash && !description.encoded_slash) {
                continue;
            }
            let head = self.head(plugin);
            if let Ok(intent) = call_route(plugin, UNDISCLOSED_KIND, &head).await? {
                routed.push(RoutedPlugin { plugin: Arc::clone(plugin), head, intent });
            }
        }
        Ok(routed)
    }

    fn head(&self, plugin: &Plugin) -> Arc<RequestHead> {
        let IdentifiedRequest { parts, address, query, .. } = self.identified;
        let (base_url, request_id) = (self.base_url, self.request_id);
        let (caller, tokens, repository) = (None, &[][..], None);
        let source = HeadSource { parts, address, query, base_url, caller, request_id, tokens, repository };
        head::head(source, plugin.description())
    }
}
