//! `/home`: the first page that a member sees. It shows packages and repositories that the member
//! may read, and to people who manage them what needs their attention.

mod attention;
mod overview;
mod steps;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::home::{self, FailingProxy, HomePackage, StorageOverview};
use packhouse_api::operations::policies::{self, Rule};
use packhouse_api::operations::server_health::{self, ServerHealth};
use packhouse_api::operations::{PageRequest, activity};
use packhouse_identity::permissions::Permission::{ManageRepositories, ManageServer};
use packhouse_store::{DayOfActivity, MAX_RULES, RankedRepository};

use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::{PageResult, chart, dates, parts};

/// Facts for a member who manages all repositories.
struct ManagerFacts {
    storage: StorageOverview,
    days: Vec<DayOfActivity>,
    proxies: Vec<FailingProxy>,
    policies: Vec<Rule>,
}

pub(super) async fn page(ctx: &PageContext) -> PageResult {
    let (own, expiring, managed, server) = tokio::try_join!(
        home::readable(&ctx.actor),
        home::expiring(&ctx.actor),
        manager_facts(ctx),
        server_facts(ctx),
    )?;
    let empty = managed.as_ref().is_some_and(|managed| managed.storage.totals.versions == 0);
    let steps = match &managed {
        Some(managed) if empty => steps::section(ctx, &managed.storage.totals, &own.repositories).await?,
        _ => Markup::default(),
    };
    let items = attention::items(ctx, managed.as_ref(), server.as_ref(), &expiring, empty);
    let body = html! {
        (steps)
        (attention::section(&items, managed.is_some() || server.is_some()))
        @if own.repositories.is_empty() {
            @if managed.is_none() { (without_repositories()) }
        } @else {
            div.home {
                (packages("home-newest", "Recently published", &own.newest, "Nothing has been published yet.", published))
                (packages("home-used", "Most used in the last 30 days", &own.most_used, "Nothing was downloaded in the last 30 days.", downloaded))
                (repositories(&own.repositories))
            }
        }
        @if let Some(managed) = &managed {
            @if !empty { div.home { (overview::storage(&managed.storage)) (overview::policies(&managed.policies)) } }
            (chart::activity(&managed.days))
        }
        @if let Some(server) = &server { (overview::server(server, ctx.actor.now)) }
    };
    Ok(frame::page(ctx, Sheet::of("Home"), &body))
}

async fn manager_facts(ctx: &PageContext) -> Result<Option<ManagerFacts>, ApiError> {
    if !ctx.holds(ManageRepositories) {
        return Ok(None);
    }
    let storage = home::storage(&ctx.actor).await?;
    let days = activity::of_organization(&ctx.actor).await?;
    let proxies = home::failing_proxies(&ctx.actor).await?;
    let page = PageRequest { limit: MAX_RULES, after: None };
    let policies = policies::list(&ctx.actor, page).await?.rows;
    Ok(Some(ManagerFacts { storage, days, proxies, policies }))
}

async fn server_facts(ctx: &PageContext) -> Result<Option<ServerHealth>, ApiError> {
    if !ctx.holds(ManageServer) {
        return Ok(None);
    }
    server_health::show(&ctx.actor).await.map(Some)
}

fn without_repositories() -> Markup {
    html! {
        div.card.empty {
            h2 { "No repositories yet" }
            p { "You do not have access to any repository yet. Ask the person who invited you." }
        }
    }
}

/// Builds a list of packages. `about` tells why a package is in it.
fn packages(
    id: &str,
    title: &str,
    listed: &[HomePackage],
    none: &str,
    about: fn(&HomePackage) -> Markup,
) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            @if listed.is_empty() { p.soft { (none) } } @else {
                ul.rows { @for one in listed { li { (package(one, &about(one))) } } }
            }
        }
    }
}

fn package(one: &HomePackage, about: &Markup) -> Markup {
    let HomePackage { repository, format, package } = one;
    html! {
        div.what {
            div {
                a href=(parts::package(repository, &package.name)) { (parts::isolated(&package.name)) }
                " " (parts::tag(format))
                @if !package.state.is_empty() { " " (parts::tag(&package.state)) }
            }
            @if !package.summary.is_empty() { p.clip { (parts::short(&package.summary)) } }
            p.meta {
                span { (parts::short(&package.latest)) }
                span { "in " a href=(parts::repository(repository)) { (repository) } }
                (about)
            }
        }
    }
}

fn published(one: &HomePackage) -> Markup {
    html! { span { (dates::time(one.package.published_at)) } }
}

fn downloaded(one: &HomePackage) -> Markup {
    parts::count(one.package.downloads, "download", "downloads")
}

fn repositories(listed: &[RankedRepository]) -> Markup {
    html! {
        section aria-labelledby="home-repositories" {
            h2 id="home-repositories" { "Your repositories" }
            ul.rows {
                @for one in listed {
                    li {
                        div.what {
                            a href=(parts::repository(&one.name)) { (one.name) }
                            p.meta {
                                span { (one.format) }
                                span { (one.kind) }
                                @if one.kind != "group" {
                                    (parts::count(one.usage.packages, "package", "packages"))
                                    (parts::size(one.usage.bytes))
                                }
                                @if let Some(at) = one.usage.last_published_at { span { "last publish " (dates::time(at)) } }
                            }
                        }
                    }
                }
            }
            p { a href="/repositories" { "All repositories" } }
        }
    }
}
