//! `/repositories/{name}/cache`: what a proxy keeps of its upstream, how it answers, and purging.

use std::sync::Arc;

use maud::html;
use packhouse_api::operations::proxy_cache::{self, Kept, KeptRequest};
use packhouse_api::operations::repositories;

use super::Routes;
use super::repositories::{ROWS, after};
use super::repository::{named, sheet, tabs};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, frame, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/cache", visit::page(show).merge(visit::form(purge)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let proxy = repositories::managed_proxy(&seat.actor, &row.id.to_string()).await?;
    let (prefix, offset) = (seat.query.text("path"), after::<u32>(&seat)?.unwrap_or_default());
    let request = KeptRequest { prefix, offset, limit: ROWS };
    let Kept { entries, more, total, bytes, counts } =
        proxy_cache::list(&seat.actor, &proxy.id.to_string(), request).await?;
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
        (tabs(&seat, &row, "/cache"))
        div.card {
            dl {
                dt { "Kept" } dd { (parts::count(total, "answer", "answers")) ", " (parts::size(bytes)) }
                dt { "From the cache" } dd { (count("hits")) }
                dt { "From the upstream" } dd { (count("misses")) }
                dt { "Older than it should be" } dd { (count("stale")) }
                dt { "Not answered" } dd { (count("errors")) }
            }
            p.hint { "Requests since this server started." }
        }
        form.bar method="get" action=(seat.path) {
            div.field { label for="path" { "Paths that begin with" } input id="path" name="path" value=(prefix); }
            button type="submit" { "Show" }
        }
        @if entries.is_empty() { p { "Nothing is kept" @if !prefix.is_empty() { " that begins so" } "." } }
        @else { (parts::table("Kept answers", &["Path", "Answer", "Size", "Fetched", "Last used"], &rows)) }
        (parts::further(&seat.path, &[("path", prefix)], next.as_deref()))
        div.card.danger {
            h2 { "Purge" }
            @if prefix.is_empty() { p { "All of it is forgotten, and fetched again when somebody asks." } }
            @else { p { "What begins with " code { (prefix) } " is forgotten, and fetched again when somebody asks." } }
            (parts::deed(&seat, &seat.path, &[("path", prefix)], &html! { button.bad type="submit" { "Purge" } }))
        }
    };
    Ok(frame::page(&seat, sheet(&row), &body))
}

async fn purge(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    proxy_cache::purge(&seat.actor, &row.id.to_string(), seat.form.text("path")).await?;
    Ok(see_other(&format!("{}?done=purged", seat.path)))
}
