//! `/repositories`: repositories that the member has access to.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::repositories::RepositoryWithUsage;
use packhouse_api::operations::{PageRequest, repositories};
use packhouse_identity::permissions::Permission::ManageRepositories;

use super::Routes;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

/// Maximum rows of a page.
pub(super) const ROWS: u32 = 50;

pub(super) fn routes() -> Routes {
    vec![("/repositories", visit::page(show))]
}

/// Returns the position at which a list continues, from the link on the previous page. 400
/// `invalid_request` if the position is malformed.
pub(super) fn after<I: std::str::FromStr>(ctx: &PageContext) -> Result<Option<I>, ApiError> {
    let after = ctx.query.get("after").map(str::parse).transpose();
    after.map_err(|_| ApiError::invalid("The position in the list is invalid. Go back to the first page."))
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<String>(&ctx)? };
    let listed = repositories::list_by_name(&ctx.actor, &page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|one| one.row.name.clone());
    let manages = ctx.holds(ManageRepositories);
    let body = html! {
        @if listed.rows.is_empty() { (empty(manages)) } @else {
            (parts::list_length(&ctx, listed.rows.len(), listed.more, "repository", "repositories"))
            ul.rows { @for row in &listed.rows { li { (one(row)) } } }
        }
        (parts::next_page_link("/repositories", &[], next.as_deref()))
    };
    let beside = html! { @if manages { a.button.go href="/repositories/new" { "New repository" } } };
    Ok(frame::page(&ctx, Sheet { beside, ..Sheet::of("Repositories") }, &body))
}

fn one(with: &RepositoryWithUsage) -> Markup {
    let RepositoryWithUsage { row, usage } = with;
    html! {
        div.what {
            a href=(parts::repository(&row.name)) { (row.name) }
            p.meta { span { (row.format) } span { (row.kind) } @if row.public { span { "public" } }
                @if let Some(usage) = usage {
                    (parts::count(usage.packages, "package", "packages"))
                    (parts::size(usage.bytes))
                    @match usage.last_published_at { Some(at) => span { "last publish " (dates::time(at)) }, None => span { "nothing published yet" } }
                } @else { (parts::count(row.members.len() as u64, "member", "members")) }
            }
        }
    }
}

fn empty(manages: bool) -> Markup {
    html! {
        div.card.empty {
            h2 { "No repositories yet" }
            @if manages {
                p { "A repository contains packages of one format. A hosted repository stores what you publish, a proxy caches what it fetches from another server, and a group combines several repositories." }
                ol.steps {
                    li { "Create a repository." }
                    li { "Create a token for it." }
                    li { "Enter the address and the token in your client, as described in the Connection Settings." }
                }
                p { a.button.go href="/repositories/new" { "Create the first repository" } }
            } @else {
                p { "You do not have access to any repository yet. Ask the person who invited you." }
            }
        }
    }
}
