//! `/settings`: name, address, quota and usage of the organization. `/organization` is the same
//! page.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::activity;
use packhouse_api::operations::organization::{self, Organization, Usage};
use packhouse_identity::permissions::Permission::{ManageOwnerAccount, ManageRepositories};
use serde_json::{Value, json};

use super::Routes;
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, chart, dates, fault, parts};

const PATH: &str = "/settings";
/// Maximum rows of the table of usage.
const ROWS: usize = 50;

pub(super) fn routes() -> Routes {
    let methods = || visit::page(show).merge(visit::form(act));
    vec![(PATH, methods()), ("/organization", methods())]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let own = organization::show(&ctx.actor).await?;
    let (owner, manages) = (ctx.holds(ManageOwnerAccount), ctx.holds(ManageRepositories));
    let body = html! {
        div.card {
            dl {
                dt { "Name" } dd { (parts::isolated(&own.row.name)) }
                dt { "Address for clients" } dd { code { (own.base_url) } }
                dt { "Created" } dd { (dates::time(own.row.created_at)) }
                dt { "Quota" } dd { @match own.row.quota_bytes { Some(bytes) => (parts::size(bytes)), None => "none" } }
            }
        }
        @if owner { (own_form(ctx, &own, wrong)) }
        @if manages {
            (usage(&organization::usage(&ctx.actor).await?))
            (chart::activity(&activity::of_organization(&ctx.actor).await?))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Organization") }, &body))
}

fn usage(usage: &Usage) -> Markup {
    let mut largest: Vec<_> = usage.repositories.iter().collect();
    largest.sort_by_key(|row| std::cmp::Reverse(row.usage.bytes));
    let rows = html! {
        @for row in largest.iter().take(ROWS) {
            tr {
                th scope="row" { a href=(parts::repository(&row.name)) { (row.name) } }
                td.num { (parts::size(row.usage.bytes)) }
                td.num { (row.usage.packages) }
                td.num { (row.usage.versions) }
                td.num { (row.usage.downloads) }
            }
        }
    };
    html! {
        h2 { "Usage" }
        div.card {
            dl {
                dt { "Files" } dd { (parts::size(usage.bytes)) }
                dt { "Stored after deduplication" } dd { (parts::size(usage.stored_bytes)) }
                dt { "Packages" } dd { (usage.packages) " in " (parts::count(usage.versions, "version", "versions")) }
                dt { "Downloads" } dd { (usage.downloads) }
            }
            (bars(&largest))
        }
        @if !largest.is_empty() { (parts::table("Usage by repository", &["Repository", "Size", "Packages", "Versions", "Downloads"], &rows)) }
    }
}

/// Draws the sizes of the largest repositories. The table next to it contains the same numbers.
fn bars(largest: &[&packhouse_store::UsageRow]) -> Markup {
    let most = largest.first().map_or(0, |row| row.usage.bytes);
    let rows: Vec<_> = largest.iter().filter(|row| row.usage.bytes > 0).take(12).collect();
    if rows.len() < 2 {
        return Markup::default();
    }
    let height = |bytes: u64| (bytes as f64 / most as f64 * 60.0).max(1.0);
    html! {
        svg.bars viewBox={ "0 0 " (rows.len() * 24) " 62" } preserveAspectRatio="xMinYMax meet" role="img" aria-label="Size of the largest repositories" {
            @for (at, row) in rows.iter().enumerate() {
                rect x=(at * 24 + 2) y=(format!("{:.1}", 61.0 - height(row.usage.bytes))) width="18" height=(format!("{:.1}", height(row.usage.bytes))) rx="2" { title { (row.name) } }
            }
        }
    }
}

fn own_form(ctx: &PageContext, own: &Organization, wrong: Option<&ApiError>) -> Markup {
    let filled = Filled::new(&ctx.form, wrong);
    let quota = own.row.quota_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let name = Text { label: "Name", name: "name", required: true, first: &own.row.name, ..Text::default() };
    let quota = Text {
        label: "Quota (bytes)",
        name: "quota_bytes",
        kind: "number",
        hint: "Maximum size of all repositories together. If empty, there is no limit.",
        first: &quota,
        ..Text::default()
    };
    html! {
        form.card method="post" action=(PATH) {
            h2 { "Name and quota" }
            (parts::form_tokens(ctx))
            (filled.with_error(html! { (filled.text(name)) (filled.text(quota)) button.go type="submit" { "Save" } }))
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    match change(&ctx).await {
        Ok(()) => Ok(see_other(&format!("{PATH}?done=saved"))),
        Err(error) => page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
    }
}

async fn change(ctx: &PageContext) -> Result<(), ApiError> {
    let quota = match ctx.form.text("quota_bytes") {
        "" => Value::Null,
        text => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
    };
    let change = forms::organization_change(json!({"name": ctx.form.text("name"), "quota_bytes": quota}))?;
    organization::change(&ctx.actor, change).await.map(drop)
}
