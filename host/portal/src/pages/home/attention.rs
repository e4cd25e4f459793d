//! The list of things that need the attention of the member.

use maud::{Markup, html};
use packhouse_api::operations::home::{ExpiringCredentials, FailingProxy};
use packhouse_api::operations::repositories::HealthState;
use packhouse_api::operations::server_health::ServerHealth;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_store::ExpiringApiToken;

use super::super::health;
use super::ManagerFacts;
use crate::page_context::PageContext;
use crate::{dates, parts};

/// Returns an entry for each thing that needs the attention of the member, the most urgent first.
/// An empty organization needs no backup yet.
pub(super) fn items(
    ctx: &PageContext,
    managed: Option<&ManagerFacts>,
    server: Option<&ServerHealth>,
    expiring: &ExpiringCredentials,
    empty: bool,
) -> Vec<Markup> {
    let now = ctx.actor.now;
    let mut items = Vec::new();
    if let Some(server) = server {
        items.extend(health::problems(server, now, !empty));
    }
    if let Some(managed) = managed {
        items.extend(managed.proxies.iter().map(proxy));
        let failing = managed.policies.iter().filter_map(|rule| rule.failure.as_ref().map(|why| (rule, why)));
        items.extend(failing.map(|(rule, why)| {
            html! {
                "The policy " a href={ "/policies/" (rule.row.id) } { (parts::isolated(&rule.row.name)) }
                " fails, so it blocks the versions that it would check: " (parts::short(&why.error))
            }
        }));
    }
    items.extend(expiring.keys.iter().map(|key| {
        let of = if key.repository.is_some() { "repo" } else { "org" };
        html! {
            "The service key " a href={ "/service-keys?of=" (of) } { (parts::isolated(&key.name)) }
            @if let Some(repository) = &key.repository { " of " (repository) }
            " " (expires(key.expires_at, now))
        }
    }));
    items.extend(expiring.api_tokens.iter().map(|token| api_token(ctx, token)));
    items
}

/// Builds the list. `reports_calm` also tells that nothing needs attention.
pub(super) fn section(items: &[Markup], reports_calm: bool) -> Markup {
    if items.is_empty() {
        return html! { @if reports_calm { p.soft { "Nothing needs your attention." } } };
    }
    html! {
        section.card.attention aria-labelledby="home-attention" {
            h2 id="home-attention" { "Needs attention (" (items.len()) ")" }
            ul { @for item in items { li { (item) } } }
        }
    }
}

fn proxy(proxy: &FailingProxy) -> Markup {
    let state = match proxy.health.state {
        HealthState::Refused => "refuses requests",
        HealthState::Ok | HealthState::Unreachable => "cannot be used",
    };
    html! {
        "The upstream of " a href=(parts::repository(&proxy.name)) { (proxy.name) } " " (state)
        " since " (dates::time(proxy.health.since))
        @if let Some(detail) = &proxy.health.detail { ": " (parts::short(detail)) }
    }
}

fn api_token(ctx: &PageContext, token: &ExpiringApiToken) -> Markup {
    let is_own = token.owner == ctx.actor.member().id;
    let path = match is_own || !ctx.holds(ManageMembers) {
        true => "/api-tokens".to_owned(),
        false => format!("/api-tokens?owner={}", token.owner),
    };
    html! {
        "The API token " a href=(path) { (parts::isolated(&token.name)) }
        @if !is_own { " of " (parts::isolated(&token.owner_name)) }
        " " (expires(token.expires_at, ctx.actor.now))
    }
}

fn expires(at: i64, now: i64) -> Markup {
    html! { "expires in " (health::duration(at.saturating_sub(now))) ", on " (dates::time(at)) "." }
}
