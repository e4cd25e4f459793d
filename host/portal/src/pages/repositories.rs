//! `/repositories`: what the member may know of.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, repositories};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RepositoryId, RepositoryRow};

use super::Routes;
use crate::frame::{self, Sheet};
use crate::visit::{self, Seat};
use crate::{Answer, parts};

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
    let listed = repositories::list(&seat.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
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

fn one(row: &RepositoryRow) -> Markup {
    html! {
        div.what {
            a href=(parts::repository(&row.name)) { (row.name) }
            p.meta { span { (row.format) } span { (row.kind) } @if row.public { span { "public" } } }
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
