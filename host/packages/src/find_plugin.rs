//! The step that finds the responsible plugin. The claim or the repository's format determines the
//! plugin, and the format must be enabled.

use std::sync::Arc;

use packhouse_runtime::{Description, Plugin};

use crate::access_request as access;
use crate::error_response::HttpError;
use crate::head::{self, HeadSource};
use crate::identified_request::IdentifiedRequest;
use crate::identify;
use crate::repository_request::{NamedRepository, RepositoryRequest};
use crate::request_context::RequestContext;
use packhouse_wire::catalogue;

/// Message for a repository whose format has no loaded plugin although no operator disabled the
/// format.
const NOT_LOADED: &str =
    "No plugin for this format is loaded. The operator finds the reason in the server's log and in /readyz.";

/// Finds the plugin. Fails with 400 for an encoded slash that the format does not accept. If the
/// format is disabled or not loaded, fails with the refusal of the credential, or else with 503. A
/// name without a repository is treated as a format that is not loaded. Fails with 503 at once if a
/// component that is still being compiled may be responsible.
pub(crate) async fn find_plugin<'a>(
    identified: &'a IdentifiedRequest<'_>,
    context: &mut RequestContext,
) -> Result<RepositoryRequest<'a>, HttpError> {
    let IdentifiedRequest { app, parts, organization, address, query, principal, peer, now, .. } = identified;
    let plugin = identified.serving();
    let description = plugin.as_ref().map(|plugin| plugin.description());
    context.set_format(description);
    context.repository = identified.repository().map(|row| row.id);
    // This applies even to a name without a repository: the format's rules for refusals are not
    // known yet.
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
        scope_template,
        principal,
        peer: *peer,
        head,
        now: *now,
    })
}

/// Returns the refusal of an encoded slash in a path that must not contain one.
pub(crate) fn encoded_slash() -> HttpError {
    HttpError::with(&catalogue::MALFORMED_ADDRESS, "a path segment must not contain an encoded slash")
}

/// Returns the likely description of the repository's component while that component is being
/// compiled. Returns `None` if the description is not known, or if the caller must not learn that
/// the repository exists.
fn awaited(identified: &IdentifiedRequest<'_>) -> Option<Arc<Description>> {
    let row = identified.repository()?;
    let current = identified.app.runtime.current();
    let description = current.awaited_description(&row.format)?;
    let (required, facts) =
        (access::action_by_method(identified.parts.method.as_str()), access::facts(row, true));
    let (presented, rules) = (&identified.principal.presented, access::rules(Some(&**description)));
    let judged = access::authorize(presented, &rules, required, Some(facts), identified.now);
    judged.is_ok().then(|| Arc::clone(description))
}

/// Returns the refusal if no plugin is available. Without a plugin, the method of the request
/// determines the required access.
fn switched_off(identified: &IdentifiedRequest<'_>, description: Option<&Description>) -> HttpError {
    let required = access::action_by_method(identified.parts.method.as_str());
    let facts = identified.repository().map(|row| access::facts(row, false));
    let rules = access::rules(description);
    let judged = access::authorize(&identified.principal.presented, &rules, required, facts, identified.now);
    let refused = judged.err().unwrap_or_else(|| HttpError::of(&catalogue::FORMAT_DISABLED));
    let not_loaded = description.is_none() && refused.is_of(&catalogue::FORMAT_DISABLED);
    if not_loaded { refused.with_message(NOT_LOADED) } else { refused }
}
