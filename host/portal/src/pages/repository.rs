//! `/repositories/{name}`: packages of a repository. Also the parts that all pages about a
//! repository share.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::activity;
use packhouse_api::operations::packages::{self, Packages, Search};
use packhouse_api::operations::repositories::{self, HealthState, RepositoryHealth};
use packhouse_store::{PackageSummary, RepositoryRow};

use super::Routes;
use super::repositories::ROWS;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, chart, dates, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}", visit::page(show))]
}

/// Finds the repository that the path names.
pub(super) async fn named(ctx: &PageContext) -> Result<RepositoryRow, ApiError> {
    repositories::named(&ctx.actor, ctx.named("name")).await
}

/// Returns title and breadcrumbs of a page about a repository.
pub(super) fn sheet<'a>(row: &'a RepositoryRow) -> Sheet<'a> {
    let crumbs = html! {
        p.crumbs { a href="/repositories" { "Repositories" } " / " (row.format) " " (row.kind) @if row.public { ", public" } }
    };
    Sheet { crumbs, ..Sheet::of(&row.name) }
}

/// Builds the tabs of a repository.
pub(super) fn tabs(ctx: &PageContext, row: &RepositoryRow, here: &str) -> Markup {
    let path = parts::repository(&row.name);
    let manages = ctx.actor.manages(row);
    let restores = manages || ctx.actor.rights_in(row).delete;
    let all = [
        (true, "", "Packages"),
        (true, "/connection", "Connection Settings"),
        (manages, "/settings", "Settings"),
        (manages && row.kind == repositories::PROXY, "/cache", "Cache"),
        (row.kind == "hosted" && restores, "/trash", "Trash"),
    ];
    html! {
        nav.tabs aria-label="Repository" {
            ul {
                @for (_, below, name) in all.iter().filter(|(shown, ..)| *shown) {
                    li { a href={ (path) (below) } aria-current=[(*below == here).then_some("page")] { (name) } }
                }
            }
        }
    }
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let health = repositories::health_of(&ctx.actor, &row).await?;
    let health = health.as_ref().map(health_of).unwrap_or_default();
    let words = ctx.query.text("q");
    let search = match words {
        "" => Search::Names { after: ctx.query.get("after").unwrap_or_default().to_owned() },
        words => Search::Words { words: words.to_owned(), after: ctx.query.get("after").map(str::to_owned) },
    };
    let listed = packages::list(&ctx.actor, &row.id.to_string(), search, ROWS).await;
    let Packages { summaries, next } = match listed {
        Ok(packages) => packages,
        // A member who may manage the repository but not read it can still use the other tabs.
        Err(error) if ctx.actor.manages(&row) => {
            let wrong = visit::form_error(&ctx, error)?;
            let body = html! { (tabs(&ctx, &row, "")) (health) (parts::alert(wrong.message())) };
            let status = crate::fault::status(&wrong);
            return Ok(frame::page(&ctx, Sheet { status, ..sheet(&row) }, &body));
        }
        Err(error) => return Err(error),
    };
    let path = parts::repository(&row.name);
    let begins = words.is_empty() && !ctx.query.has("after");
    // A group stores nothing itself, so it has no activity.
    let activity = match row.members.is_empty() && begins {
        true => chart::activity(&activity::of_repository(&ctx.actor, &row.id.to_string()).await?),
        false => Markup::default(),
    };
    let body = html! {
        (tabs(&ctx, &row, ""))
        (health)
        @if summaries.is_empty() && begins { (empty(&row, &path)) } @else {
            (search_form(&path, words))
            @if summaries.is_empty() { p { "No package matches " (parts::isolated(words)) "." } } @else {
                ul.rows { @for summary in &summaries { li { (one(&row.name, summary)) } } }
            }
        }
        (parts::next_page_link(&path, &[("q", words)], next.as_deref()))
        (activity)
    };
    Ok(frame::page(&ctx, sheet(&row), &body))
}

/// Describes the problems of upstreams, if there are any.
fn health_of(health: &RepositoryHealth) -> Markup {
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

pub(super) fn search_form(path: &str, words: &str) -> Markup {
    html! {
        form.bar method="get" action=(path) role="search" {
            div.field { label for="q" { "Search" } input id="q" name="q" type="search" value=(words) dir="auto"; }
            button type="submit" { "Find" }
        }
    }
}

fn one(repository: &str, package: &PackageSummary) -> Markup {
    html! {
        div.what {
            a href=(parts::package(repository, &package.name)) { (parts::isolated(&package.name)) }
            p.meta {
                @if let Some(latest) = &package.latest { span { (parts::isolated(latest)) } }
                (parts::count(package.versions, "version", "versions"))
                @if let Some(at) = package.updated_at { span { (dates::unsigned_time(at)) } }
            }
        }
    }
}

fn empty(row: &RepositoryRow, path: &str) -> Markup {
    let settings = format!("{path}/connection");
    html! {
        div.card.empty {
            h2 { "No packages yet" }
            @if row.kind == repositories::PROXY {
                p { "Packages that clients request are fetched from " code { (row.upstream.as_deref().unwrap_or_default()) } " and cached. Connect a client and install a package." }
            } @else if row.members.is_empty() && row.kind != "hosted" {
                p { "This group has no members yet. Add members in its settings." }
                p { a.button href={ (path) "/settings" } { "Open settings" } }
            } @else {
                p { "Connect a client and publish the first package:" }
                ol.steps {
                    li { a href={ "/tokens?repository=" (parts::segment(&row.name)) } { "Create a token" } " that may read and write in this repository." }
                    li { "Configure your client as described in the " a href=(settings) { "Connection Settings" } "." }
                    li { "Publish a package with your usual command." }
                }
            }
            p { a.button.go href=(settings) { "Open the Connection Settings" } }
        }
    }
}
