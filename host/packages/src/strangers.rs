//! The step that meets strangers: callers without a credential, or with one that is not taken, at a repository that is not
//! public. What they are answered is told from the request alone, so that it is the same for a repository that is there,
//! whatever its format, kind and state, and for none at all. Below a claim the path says the format; there the claim's plugin
//! judges.
//!
//! What a format opens to anybody, such as the beginning of a sign-in, is offered at every name.

use std::sync::Arc;

use http::Method;
use packhouse_runtime::{Intent, Plugin, RequestHead};

use crate::access_request as access;
use crate::error_response::{HttpError, MissingScope};
use crate::find_plugin::encoded_slash;
use crate::head::{self, HeadSource};
use crate::identified_request::IdentifiedRequest;
use crate::repository_request::{NamedRepository, RepositoryRequest, UNDISCLOSED_KIND};
use crate::request_context::RequestContext;
use crate::route::ask_plugin;
use packhouse_identity::access::{self as access_rules, AccessAction, ResolvedCredential, is_stranger};
use packhouse_wire::catalogue;

/// A plugin that takes the request, and what it says of it.
struct Routed {
    plugin: Arc<Plugin>,
    head: Arc<RequestHead>,
    intent: Intent,
}

/// A stranger's request.
struct Stranger<'a> {
    identified: &'a IdentifiedRequest<'a>,
    base_url: &'a str,
    request_id: &'a Arc<str>,
}

/// Refuses a stranger's request that no format opens to anybody. A request that the format of another repository than the one
/// that is there opens is returned, about a repository that is not disclosed. None for a caller who is no stranger, and for a
/// request that the repository's own format opens: it takes the way of all others.
pub(crate) async fn open<'a>(
    identified: &'a IdentifiedRequest<'_>,
    context: &mut RequestContext,
) -> Result<Option<RepositoryRequest<'a>>, HttpError> {
    let repository = identified.repository();
    let public = repository.is_some_and(|row| row.public);
    let presented = &identified.principal.presented;
    if identified.address.claim.is_some() || public || !is_stranger(presented, identified.now) {
        return Ok(None);
    }
    Box::pin(open_to_stranger(identified, context)).await
}

async fn open_to_stranger<'a>(
    identified: &'a IdentifiedRequest<'_>,
    context: &mut RequestContext,
) -> Result<Option<RepositoryRequest<'a>>, HttpError> {
    let (repository, principal) = (identified.repository(), &identified.principal);
    let (base_url, request_id) = (context.base_url.as_str(), &context.request_id);
    let stranger = Stranger { identified, base_url, request_id };
    if !stranger.makes_sense().await? {
        return Err(encoded_slash());
    }
    let Some(Routed { plugin, head, intent }) = stranger.opened().await? else {
        return Err(stranger.refusal().await);
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
        on_trial: None,
        scope_template: None,
        principal,
        peer: identified.peer,
        head,
        now: identified.now,
    }))
}

impl Stranger<'_> {
    /// Who opens this request to anybody. A format that says which requests it opens is asked at every name; one that does not, in
    /// its own repositories alone. Where several open the same, the repository's own does.
    async fn opened(&self) -> Result<Option<Routed>, HttpError> {
        let IdentifiedRequest { app, parts, address, principal, .. } = self.identified;
        let own = principal.facts.repository.as_ref().map(|row| row.format.as_str());
        let asked = |plugin: &&Arc<Plugin>| {
            let description = plugin.description();
            let undeclared = description.open_requests.is_none() && own == Some(description.format.as_str());
            undeclared || description.may_open(parts.method.as_str(), &address.path)
        };
        let current = app.runtime.current();
        let mut plugins: Vec<&Arc<Plugin>> = current.plugins().iter().filter(asked).collect();
        plugins.sort_by_key(|plugin| own != Some(plugin.description().format.as_str()));
        let routed = self.routed(&plugins).await?;
        Ok(routed.into_iter().find(|routed| access::wanted(&routed.intent) == AccessAction::Open))
    }

    /// Whether the path makes sense anywhere: an encoded slash may stand in it where a format that is switched on takes it so.
    async fn makes_sense(&self) -> Result<bool, HttpError> {
        if !self.identified.address.encoded_slash {
            return Ok(true);
        }
        let current = self.identified.app.runtime.current();
        let plugins = current.plugins().iter();
        let plugins: Vec<_> = plugins.filter(|plugin| plugin.description().encoded_slash).collect();
        Ok(!self.routed(&plugins).await?.is_empty())
    }

    /// The refusal: 401. For a bearer that is not taken it is 404 where a format that is switched on reads here and answers so. 503 where
    /// a format that is still being compiled may open the request, or take the credential. Reads without any credential are not among
    /// those: clients of formats that are served already begin so, and go on once they are asked for one.
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
        let missing = MissingScope::of(&principal.bearer_scope, *as_bearer, false);
        if principal.presented == ResolvedCredential::Nothing {
            return Ok(HttpError::of(&catalogue::UNAUTHORIZED).missing_scope(None, missing));
        }
        let hidden = *as_bearer && self.is_hidden().await?;
        let row = if hidden { &catalogue::NOT_FOUND } else { &catalogue::UNAUTHORIZED };
        let sentence = access_rules::ended(&principal.presented, *now).unwrap_or(row.sentence);
        Ok(HttpError::of(row).in_words(sentence).of_credential().missing_scope(None, missing))
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
        Ok(routed.iter().any(|Routed { plugin, intent, .. }| {
            let description = plugin.description();
            let status = match access::wanted(intent) {
                AccessAction::Read { for_publish: false } => description.refused_read_status,
                _ => description.refused_write_status,
            };
            status == 404
        }))
    }

    /// What those of the plugins that are switched on say the request would do, each with the request as it sees it.
    async fn routed(&self, plugins: &[&Arc<Plugin>]) -> Result<Vec<Routed>, HttpError> {
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
            if let Ok(intent) = ask_plugin(plugin, UNDISCLOSED_KIND, &head).await? {
                routed.push(Routed { plugin: Arc::clone(plugin), head, intent });
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
