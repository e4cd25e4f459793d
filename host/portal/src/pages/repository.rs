//! `/repositories/{name}`: the packages that a repository holds; and what its other pages have in common.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::activity;
use packhouse_api::operations::packages::{self, Packages, Search};
use packhouse_api::operations::repositories::{self, HealthState, RepositoryHealth};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{PackageSummary, RepositoryRow};

use super::Routes;
use super::repositories::ROWS;
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, chart, dates, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}", visit::page(show))]
}

/// The repository that the path names.
pub(super) async fn named(seat: &Seat) -> Result<RepositoryRow, ApiError> {
    repositories::named(&seat.actor, seat.named("name")).await
}

/// A page about a repository: its name, its tabs, and the tab's own content.
pub(super) fn sheet<'a>(row: &'a RepositoryRow) -> Sheet<'a> {
    let crumbs = html! {
        p.crumbs { a href="/repositories" { "Repositories" } " / " (row.format) " " (row.kind) @if row.public { ", public" } }
    };
    Sheet { crumbs, ..Sheet::of(&row.name) }
}

/// The ways between the pages about a repository.
pub(super) fn tabs(seat: &Seat, row: &RepositoryRow, here: &str) -> Markup {
    let path = parts::repository(&row.name);
    let manages = seat.holds(ManageRepositories);
    let all = [
        (true, "", "Packages"),
        (true, "/connection", "Connection Settings"),
        (manages, "/settings", "Settings"),
        (manages && row.kind == repositories::PROXY, "/cache", "Cache"),
        (row.kind == "hosted" && seat.actor.permissions().rights(row.id).delete, "/trash", "Trash"),
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

async fn show(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let health = repositories::health_of(&seat.actor, &row).await?;
    let health = health.as_ref().map(health_of).unwrap_or_default();
    let words = seat.query.text("q");
    let search = match words {
        "" => Search::Names { after: seat.query.get("after").unwrap_or_default().to_owned() },
        words => Search::Words { words: words.to_owned(), after: seat.query.get("after").map(str::to_owned) },
    };
    let listed = packages::list(&seat.actor, &row.id.to_string(), search, ROWS).await;
    let Packages { summaries, next } = match listed {
        Ok(packages) => packages,
        // Who manages a repository and may not read there has the other tabs.
        Err(error) if seat.holds(ManageRepositories) => {
            let wrong = visit::wrong(&seat, error)?;
            let body = html! { (tabs(&seat, &row, "")) (health) (parts::alert(wrong.message())) };
            let status = crate::fault::status(&wrong);
            return Ok(frame::page(&seat, Sheet { status, ..sheet(&row) }, &body));
        }
        Err(error) => return Err(error),
    };
    let path = parts::repository(&row.name);
    let begins = words.is_empty() && !seat.query.has("after");
    // A group holds nothing of its own, so nothing is counted of it.
    let activity = match row.members.is_empty() && begins {
        true => chart::activity(&activity::of_repository(&seat.actor, &row.id.to_string()).await?),
        false => Markup::default(),
    };
    let body = html! {
        (tabs(&seat, &row, ""))
        (health)
        @if summaries.is_empty() && begins { (empty(&row, &path)) } @else {
            (search_form(&path, words))
            @if summaries.is_empty() { p { "No package matches " (parts::said(words)) "." } } @else {
                ul.rows { @for summary in &summaries { li { (one(&row.name, summary)) } } }
            }
        }
        (parts::further(&path, &[("q", words)], next.as_deref()))
        (activity)
    };
    Ok(frame::page(&seat, sheet(&row), &body))
}

/// What upstreams do at present, where that is not all well.
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
        HealthState::Ok => "answers, but not as it is set up",
        HealthState::Refused => "refuses requests",
        HealthState::Unreachable => "cannot be used",
    };
    html! {
        p role="alert" {
            (subject) " " (what)
            @if let Some(since) = since { " since " (dates::moment(since)) }
            @if let Some(detail) = detail { ": " (parts::said(detail)) }
            "."
        }
    }
}

/// A form that looks for something here.
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
            a href=(parts::package(repository, &package.name)) { (parts::said(&package.name)) }
            p.meta {
                @if let Some(latest) = &package.latest { span { (parts::said(latest)) } }
                (parts::count(package.versions, "version", "versions"))
                @if let Some(at) = package.updated_at { span { (dates::moment(at)) } }
            }
        }
    }
}

fn empty(row: &RepositoryRow, path: &str) -> Markup {
    let settings = format!("{path}/connection");
    html! {
        div.card.empty {
            h2 { "Nothing is in it yet" }
            @if row.kind == repositories::PROXY {
                p { "What clients ask for is fetched from " code { (row.upstream.as_deref().unwrap_or_default()) } " and kept. Connect a client, and let it fetch something." }
            } @else if row.members.is_empty() && row.kind != "hosted" {
                p { "This group has no members yet, so there is nothing to show. Add some in its settings." }
                p { a.button href={ (path) "/settings" } { "Settings" } }
            } @else {
                p { "Connect a client and publish the first package:" }
                ol.steps {
                    li { a href={ "/tokens?repository=" (parts::segment(&row.name)) } { "Make a token" } " that may read and write here." }
                    li { "Put it into your client, as the " a href=(settings) { "Connection Settings" } " say, word for word." }
                    li { "Publish as you always do." }
                }
            }
            p { a.button.go href=(settings) { "Open the Connection Settings" } }
        }
    }
}
