//! `/repositories`: what the member may know of.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::repositories::RepositoryWithUsage;
use packhouse_api::operations::{PageRequest, repositories};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::RepositoryId;

use super::Routes;
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, dates, parts};

/// Rows of a page.
pub(super) const ROWS: u32 = 50;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories", visit::page(show))]
}

/// Where a list goes on, as the page before has said: 400 `invalid_request` for anything else.
pub(super) fn after<I: std::str::FromStr>(seat: &Seat) -> Result<Option<I>, ApiError> {
    let after = seat.query.get("after").map(str::parse).transpose();
    after.map_err(|_| ApiError::invalid("This list does not go on there; go back to its beginning."))
}

async fn show(seat: Arc<Seat>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<RepositoryId>(&seat)? };
    let listed = repositories::list_with_usage(&seat.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|one| one.row.id.to_string());
    let manages = seat.holds(ManageRepositories);
    let body = html! {
        @if listed.rows.is_empty() { (empty(manages)) } @else {
            ul.rows { @for row in &listed.rows { li { (one(row)) } } }
        }
        (parts::further("/repositories", &[], next.as_deref()))
    };
    let beside = html! { @if manages { a.button.go href="/repositories/new" { "New repository" } } };
    Ok(frame::page(&seat, Sheet { beside, ..Sheet::of("Repositories") }, &body))
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
            h2 { "There is no repository here yet" }
            @if manages {
                p { "A repository holds packages of one format: what you publish (hosted), what it fetches from elsewhere and keeps (proxy), or several of these as one (group)." }
                ol.steps {
                    li { "Make a repository." }
                    li { "Make a token for it." }
                    li { "Put the address and the token into your client, as its Connection Settings say." }
                }
                p { a.button.go href="/repositories/new" { "Make the first repository" } }
            } @else {
                p { "Nobody has given you a repository yet. Ask whoever invited you." }
            }
        }
    }
}
