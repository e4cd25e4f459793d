//! `/repositories/{name}/trash`: deleted versions that can be restored.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, upkeep};
use packhouse_store::TrashId;

use super::Routes;
use super::repositories::{ROWS, after};
use super::repository::{named, sheet, tabs};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/trash", visit::page(show).merge(visit::form(restore)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let row = named(ctx).await?;
    let page = PageRequest { limit: ROWS, after: after::<TrashId>(ctx)? };
    let listed = upkeep::trash(&ctx.actor, &row.id.to_string(), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|entry| entry.id.to_string());
    let rows = html! {
        @for entry in &listed.rows {
            tr {
                th scope="row" { (parts::isolated(&entry.name)) }
                td { (parts::short(&entry.version)) }
                td.tight { (dates::time(entry.deleted_at)) }
                td { (parts::isolated(&entry.deleted_by)) }
                td.num { (parts::size(entry.bytes)) }
                td.tight { (dates::time(entry.gone_at)) }
                td {
                    (parts::action_button(ctx, &ctx.path, &[("entry", &entry.id.to_string())],
                        &html! { button type="submit" { "Restore " span.away { (parts::isolated(&entry.name)) " " (parts::short(&entry.version)) } } }))
                }
            }
        }
    };
    let body = html! {
        (tabs(ctx, &row, "/trash"))
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if listed.rows.is_empty() {
            div.card.empty { h2 { "The trash is empty" } p { "Versions that members or policies delete are kept here for a while and can be restored unchanged." } }
        } @else {
            (parts::table("Deleted versions", &["Package", "Version", "Deleted", "By", "Size", "Permanently deleted", "Undo"], &rows))
        }
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..sheet(&row) }, &body))
}

async fn restore(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    match upkeep::restore(&ctx.actor, &row.id.to_string(), ctx.form.text("entry")).await {
        Ok(_) => Ok(see_other(&format!("{}?done=restored", ctx.path))),
        Err(error) => page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
    }
}
