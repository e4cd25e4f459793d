//! Header of a repository's page: its address, the health of its upstream, and its size.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::repositories::{self, HealthState, RepositoryHealth};
use packhouse_store::{RepositoryRow, RepositoryUsage};

use crate::page_context::PageContext;
use crate::{dates, parts};

/// Maximum members of a group that the header lists.
const MEMBERS: usize = 20;

/// Builds the header. `usage` is `None` for a group.
pub(super) async fn header(
    ctx: &PageContext,
    row: &RepositoryRow,
    health: Option<&RepositoryHealth>,
    usage: Option<RepositoryUsage>,
) -> Result<Markup, ApiError> {
    let address = repositories::address(&ctx.actor, row).await?;
    let address = html! { code id="address" { (address) } };
    Ok(html! {
        div.card {
            dl {
                dt { "Address" }
                dd { (parts::copyable("address", &address, "Copy address")) }
                @if let Some(health) = health { (upstreams(row, health)) }
                @if let Some(usage) = usage {
                    dt { "Content" }
                    dd {
                        (parts::count(usage.packages, "package", "packages")) ", "
                        (parts::count(usage.versions, "version", "versions")) ", "
                        (parts::size(usage.bytes)) ", "
                        (parts::count(usage.downloads, "download", "downloads"))
                    }
                }
            }
        }
    })
}

/// Names the upstream of a proxy, or the members of a group, each with its state.
fn upstreams(row: &RepositoryRow, health: &RepositoryHealth) -> Markup {
    match health {
        RepositoryHealth::Proxy(view) => html! {
            dt { "Upstream" }
            dd { code { (row.upstream.as_deref().unwrap_or_default()) } " " (state(view.state)) }
        },
        RepositoryHealth::Group(members) => html! {
            dt { "Members" }
            dd {
                @for member in members.iter().take(MEMBERS) {
                    a href=(parts::repository(&member.name)) { (member.name) } " "
                    @if member.state != HealthState::Ok { (state(member.state)) " " }
                }
                @if members.len() > MEMBERS { "and " (members.len() - MEMBERS) " more" }
            }
        },
    }
}

fn state(state: HealthState) -> Markup {
    match state {
        HealthState::Ok => html! { span.tag.on { "healthy" } },
        HealthState::Refused => html! { span.tag.refused { "refused" } },
        HealthState::Unreachable => html! { span.tag.refused { "unreachable" } },
    }
}

/// Describes the problems of upstreams, if there are any.
pub(super) fn troubles(health: &RepositoryHealth) -> Markup {
    match health {
        RepositoryHealth::Proxy(view) => {
            let since = u64::try_from(view.since).ok().filter(|_| view.state != HealthState::Ok);
            html! { (trouble("The upstream", view.state, since, view.detail.as_deref())) }
        }
        RepositoryHealth::Group(members) => html! {
            @for member in members {
                (trouble(&format!("The upstream of {}", member.name), member.state, None, member.detail.as_deref()))
            }
        },
    }
}

fn trouble(subject: &str, state: HealthState, since: Option<u64>, detail: Option<&str>) -> Markup {
    let what = match state {
        HealthState::Ok if detail.is_none() => return Markup::default(),
        HealthState::Ok => "responds, but the repository is not configured correctly for it",
        HealthState::Refused => "refuses requests",
        HealthState::Unreachable => "cannot be used",
    };
    html! {
        p role="alert" {
            (subject) " " (what)
            @if let Some(since) = since { " since " (dates::unsigned_time(since)) }
            @if let Some(detail) = detail { ": " (parts::isolated(detail)) }
            "."
        }
    }
}
