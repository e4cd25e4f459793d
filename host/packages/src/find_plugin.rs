//! The step that finds who answers: the plugin of the claim or of the repository's format, as long as that format is switched on.

use std::sync::Arc;

use packhouse_runtime::{Description, Plugin, Serving, Trial};

use crate::access_request as access;
use crate::error_response::HttpError;
use crate::head::{self, HeadSource};
use crate::identified_request::IdentifiedRequest;
use crate::identify;
use crate::repository_request::{NamedRepository, RepositoryRequest};
use crate::request_context::RequestContext;
use crate::trials::{OnTrial, Shadows};
use packhouse_wire::catalogue;

/// What is told of a repository whose format no loaded plugin has: nobody switched it off.
const NOT_LOADED: &str =
    "No plugin for this format is loaded; the server's operator finds why in its log and on /readyz.";

/// Finds the plugin. 400 for an encoded slash that the format does not take. If the format is switched off or not loaded, the
/// refusal of the credential comes first, then 503; at a name that is no repository's there is no format either. 503 at once where
/// it may be that of a component that is still being compiled.
pub(crate) async fn find_plugin<'a>(
    identified: &'a IdentifiedRequest<'_>,
    shadows: &Arc<Shadows>,
    context: &mut RequestContext,
) -> Result<RepositoryRequest<'a>, HttpError> {
    let IdentifiedRequest { app, parts, organization, address, query, principal, peer, now, .. } = identified;
    let (plugin, trial) = match identified.serving() {
        Some(Serving { plugin, trial }) => (Some(plugin), trial),
        None => (None, None),
    };
    let description = plugin.as_ref().map(|plugin| plugin.description());
    context.set_format(description);
    context.repository = identified.repository().map(|row| row.id);
    // The same at a name that is no repository's: what a format says of a refusal is not known yet.
    if plugin.is_none() && !app.runtime.is_whole() {
        context.set_format(awaited(identified).as_deref());
        return Err(HttpError::of(&catalogue::SERVER_STARTING));
    }
    if address.encoded_slash && !description.is_some_and(|description| description.encoded_slash) {
        return Err(encoded_slash());
    }
    let on = |plugin: &&Arc<Plugin>| app.enabled(&plugin.description().format, principal.facts.enabled);
    let Some(plugin) = plugin.as_ref().filter(on) else {
        return Err(switched_off(identified, description));
    };
    let texts = address.path.iter().chain(query.iter().map(|(_, value)| value));
    let tokens = identify::tokens_in(app, principal, *organization, texts).await?;
    let source = HeadSource {
        parts,
        address,
        query,
        base_url: &context.base_url,
        caller: principal.caller.as_ref(),
        request_id: &context.request_id,
        tokens: &tokens,
        repository: identified.repository().map(|row| row.id),
    };
    let head = head::head(source, plugin.description());
    let as_seen = |trial: &Trial| head::whole(source, trial.candidate.description());
    let on_trial = trial.map(|trial| OnTrial::begin(trial, shadows, &parts.method, as_seen));
    let repository = match (identified.repository(), address.name.as_deref()) {
        (Some(row), _) => Some(NamedRepository::Found(row)),
        (None, Some(name)) => Some(NamedRepository::Missing(name)),
        (None, None) => None,
    };
    let members = match (&repository, principal.facts.members.as_slice()) {
        (Some(NamedRepository::Found(_)), members @ [_, ..]) => {
            access::readable(principal, plugin.description(), members, *now)
        }
        _ => Vec::new(),
    };
    let scope_template = address.claim.as_ref().and_then(|claim| claim.challenge.as_deref());
    Ok(RepositoryRequest {
        app,
        parts,
        organization: *organization,
        repository,
        members,
        plugin: Arc::clone(plugin),
        on_trial,
        scope_template,
        principal,
        peer: *peer,
        head,
        now: *now,
    })
}

/// The refusal of an encoded slash where it may not stand.
pub(crate) fn encoded_slash() -> HttpError {
    HttpError::with(&catalogue::MALFORMED_ADDRESS, "a path segment may not hold an encoded slash here")
}

/// What the awaited component of the repository most likely says of itself, where that is known and the caller may know of the
/// repository.
fn awaited(identified: &IdentifiedRequest<'_>) -> Option<Arc<Description>> {
    let row = identified.repository()?;
    let current = identified.app.runtime.current();
    let description = current.awaited_description(&row.format)?;
    let (wanted, facts) =
        (access::wanted_by_method(identified.parts.method.as_str()), access::facts(row, true));
    let (presented, rules) = (&identified.principal.presented, access::rules(Some(&**description)));
    let judged = access::authorize(presented, &rules, wanted, Some(facts), identified.now);
    judged.is_ok().then(|| Arc::clone(description))
}

/// The refusal where no plugin answers. The plugin cannot be asked what the request does, so that is judged by its method.
fn switched_off(identified: &IdentifiedRequest<'_>, description: Option<&Description>) -> HttpError {
    let wanted = access::wanted_by_method(identified.parts.method.as_str());
    let facts = identified.repository().map(|row| access::facts(row, false));
    let rules = access::rules(description);
    let judged = access::authorize(&identified.principal.presented, &rules, wanted, facts, identified.now);
    let refused = judged.err().unwrap_or_else(|| HttpError::of(&catalogue::FORMAT_DISABLED));
    let not_loaded = description.is_none() && refused.is_of(&catalogue::FORMAT_DISABLED);
    if not_loaded { refused.in_words(NOT_LOADED) } else { refused }
}
