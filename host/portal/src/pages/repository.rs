//! `/repositories/{name}`: packages of a repository. Also the parts that all pages about a
//! repository share.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::activity;
use packhouse_api::operations::package_table::{self, SORTABLE, TableRequest};
use packhouse_api::operations::repositories;
use packhouse_store::RepositoryRow;

use super::Routes;
use super::package_table::{ROWS, TableView, order_text, parse_order, table};
use super::repository_header::{header, troubles};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, chart, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}", visit::page(show))]
}

/// Finds the repository that the path names.
pub(super) async fn named(ctx: &PageContext) -> Result<RepositoryRow, ApiError> {
    repositories::named(&ctx.actor, ctx.named("name")).await
}

/// Returns title, breadcrumbs and format of a page about a repository.
pub(super) fn sheet<'a>(row: &'a RepositoryRow) -> Sheet<'a> {
    let crumbs = html! { p.crumbs { a href="/repositories" { "Repositories" } } };
    let beside = html! {
        span.acts {
            span.tag { (row.format) }
            span.tag { (row.kind) }
            @if row.public { span.tag { "public" } }
        }
    };
    Sheet { crumbs, beside, ..Sheet::of(&row.name) }
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
    let usage = repositories::usage_of(&ctx.actor, &row).await?;
    let header = header(&ctx, &row, health.as_ref(), usage).await?;
    let top = html! { (tabs(&ctx, &row, "")) @if let Some(health) = &health { (troubles(health)) } (header) };
    let (words, order) = (ctx.query.text("q"), parse_order(ctx.query.text("sort")));
    let after = ctx.query.get("after").map(str::to_owned);
    let begins = words.is_empty() && after.is_none();
    let request = TableRequest { words: words.to_owned(), after, order, limit: ROWS };
    let list = match package_table::table(&ctx.actor, &row.id.to_string(), request).await {
        Ok(list) => list,
        // A member who may manage the repository but not read it can still use the other tabs.
        Err(error) if ctx.actor.manages(&row) => {
            let wrong = visit::form_error(&ctx, error)?;
            let body = html! { (top) (parts::alert(wrong.message())) };
            return Ok(frame::page(&ctx, Sheet { status: fault::status(&wrong), ..sheet(&row) }, &body));
        }
        Err(error) => return Err(error),
    };
    let path = parts::repository(&row.name);
    // A group stores nothing itself, so it has no activity.
    let activity = match row.members.is_empty() && begins {
        true => chart::activity(&activity::of_repository(&ctx.actor, &row.id.to_string()).await?),
        false => Markup::default(),
    };
    let few = usage.is_some_and(|usage| usage.packages <= u64::from(SORTABLE));
    let view = TableView { repository: &row.name, words, sortable: few || !words.is_empty() };
    let sort = list.order.map(order_text).unwrap_or_default();
    let body = html! {
        (top)
        @if list.rows.is_empty() && begins { (empty(&row, &path)) } @else {
            (search_form(&path, words))
            @if order.is_some() && list.order.is_none() {
                p.note { "More than " (SORTABLE) " packages cannot be sorted. Search for fewer packages." }
            }
            @if list.rows.is_empty() { p { "No package matches " (parts::isolated(words)) "." } } @else { (table(&view, &list)) }
        }
        (parts::next_page_link(&path, &[("q", words), ("sort", sort.as_str())], list.next.as_deref()))
        (activity)
    };
    Ok(frame::page(&ctx, sheet(&row), &body))
}

pub(super) fn search_form(path: &str, words: &str) -> Markup {
    html! {
        form.bar method="get" action=(path) role="search" {
            div.field { label for="q" { "Search" } input id="q" name="q" type="search" value=(words) dir="auto"; }
            button type="submit" { "Find" }
        }
    }
}

fn empty(row: &RepositoryRow, path: &str) -> Markup {
    let settings = format!("{path}/connection");
    html! {
        div.card.empty {
            h2 { @if row.members.is_empty() { "No packages yet" } @else { "Packages of the members" } }
            @if row.kind == repositories::PROXY {
                p { "Packages that clients request are fetched from " code { (row.upstream.as_deref().unwrap_or_default()) } " and cached. Connect a client and install a package." }
            } @else if row.members.is_empty() && row.kind != "hosted" {
                p { "This group has no members yet. Add members in its settings." }
                p { a.button href={ (path) "/settings" } { "Open settings" } }
            } @else if row.kind != "hosted" {
                p { "A group stores no packages itself. Its members list the packages that clients find here." }
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
