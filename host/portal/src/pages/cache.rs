//! `/repositories/{name}/cache`: cached responses of a proxy's upstream, their counts, and purging.

use std::sync::Arc;

use maud::html;
use packhouse_api::operations::proxy_cache::{self, CachePage, CachePageRequest};
use packhouse_api::operations::repositories;

use super::Routes;
use super::repositories::{ROWS, after};
use super::repository::{named, sheet, tabs};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, frame, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/cache", visit::page(show).merge(visit::form(purge)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let proxy = repositories::managed_proxy(&ctx.actor, &row.id.to_string()).await?;
    let (prefix, offset) = (ctx.query.text("path"), after::<u32>(&ctx)?.unwrap_or_default());
    let request = CachePageRequest { prefix, offset, limit: ROWS };
    let CachePage { entries, more, total, bytes, counts } =
        proxy_cache::list(&ctx.actor, &proxy.id.to_string(), request).await?;
    let next = more.then(|| offset.saturating_add(ROWS).to_string());
    let counted = serde_json::to_value(counts).unwrap_or_default();
    let count = |name: &str| counted.get(name).and_then(serde_json::Value::as_u64).unwrap_or_default();
    let rows = html! {
        @for entry in &entries {
            tr {
                th scope="row" { (parts::short(&entry.target)) }
                td { (entry.method) " " (entry.status) }
                td.num { (parts::size(entry.size)) }
                td.tight { (dates::time(entry.fetched_at)) }
                td.tight { (dates::time(entry.last_used_at)) }
            }
        }
    };
    let body = html! {
        (tabs(&ctx, &row, "/cache"))
        div.card {
            dl {
                dt { "Cached" } dd { (parts::count(total, "response", "responses")) ", " (parts::size(bytes)) }
                dt { "Served from the cache" } dd { (count("hits")) }
                dt { "Fetched from the upstream" } dd { (count("misses")) }
                dt { "Served after expiry" } dd { (count("stale")) }
                dt { "Failed" } dd { (count("errors")) }
            }
            p.hint { "Number of requests since this server started." }
        }
        form.bar method="get" action=(ctx.path) {
            div.field { label for="path" { "Paths that begin with" } input id="path" name="path" value=(prefix); }
            button type="submit" { "Show" }
        }
        @if entries.is_empty() { p { "No responses are cached" @if !prefix.is_empty() { " for paths that begin with this prefix" } "." } }
        @else { (parts::table("Cached responses", &["Path", "Response", "Size", "Fetched", "Last used"], &rows)) }
        (parts::next_page_link(&ctx.path, &[("path", prefix)], next.as_deref()))
        div.card.danger {
            h2 { "Purge" }
            @if prefix.is_empty() { p { "Removes all cached responses. They are fetched again when a client requests them." } }
            @else { p { "Removes the cached responses for paths that begin with " code { (prefix) } ". They are fetched again when a client requests them." } }
            (parts::action_button(&ctx, &ctx.path, &[("path", prefix)], &html! { button.bad type="submit" { "Purge" } }))
        }
    };
    Ok(frame::page(&ctx, sheet(&row), &body))
}

async fn purge(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    proxy_cache::purge(&ctx.actor, &row.id.to_string(), ctx.form.text("path")).await?;
    Ok(see_other(&format!("{}?done=purged", ctx.path)))
}
