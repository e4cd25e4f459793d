//! `/repositories/{name}/trash`: what was deleted and can be brought back.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, upkeep};
use packhouse_store::TrashId;

use super::Routes;
use super::repositories::{ROWS, after};
use super::repository::{named, sheet, tabs};
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/trash", visit::page(show).merge(visit::form(restore)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let row = named(seat).await?;
    let page = PageRequest { limit: ROWS, after: after::<TrashId>(seat)? };
    let listed = upkeep::trash(&seat.actor, &row.id.to_string(), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|entry| entry.id.to_string());
    let rows = html! {
        @for entry in &listed.rows {
            tr {
                th scope="row" { (parts::said(&entry.name)) }
                td { (parts::short(&entry.version)) }
                td.tight { (dates::time(entry.deleted_at)) }
                td { (parts::said(&entry.deleted_by)) }
                td.num { (parts::size(entry.bytes)) }
                td.tight { (dates::time(entry.gone_at)) }
                td {
                    (parts::deed(seat, &seat.path, &[("entry", &entry.id.to_string())],
                        &html! { button type="submit" { "Restore " span.away { (parts::said(&entry.name)) " " (parts::short(&entry.version)) } } }))
                }
            }
        }
    };
    let body = html! {
        (tabs(seat, &row, "/trash"))
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if listed.rows.is_empty() {
            div.card.empty { h2 { "Nothing is in the trash" } p { "What people and policies delete is here for a while, and can be brought back as it was." } }
        } @else {
            (parts::table("Deleted versions", &["Package", "Version", "Deleted", "By", "Size", "Gone for good", "Undo"], &rows))
        }
        (parts::further(&seat.path, &[], next.as_deref()))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..sheet(&row) }, &body))
}

async fn restore(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    match upkeep::restore(&seat.actor, &row.id.to_string(), seat.form.text("entry")).await {
        Ok(_) => Ok(see_other(&format!("{}?done=restored", seat.path))),
        Err(error) => page(&seat, Some(&visit::wrong(&seat, error)?)).await,
    }
}
