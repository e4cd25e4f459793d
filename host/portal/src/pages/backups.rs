//! `/backups`: backups of the server, for its operators.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::backups;
use packhouse_store::BackupRun;

use super::{Routes, health};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

pub(super) fn routes() -> Routes {
    vec![("/backups", visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let runs = backups::list(&ctx.actor).await?;
    let now = ctx.actor.now;
    let complete = runs.iter().filter(|run| run.size.is_some()).count();
    let failed = runs.iter().filter(|run| run.error.is_some()).count();
    let body = html! {
        @if let Some(error) = health::last_error(&runs) { p role="alert" { "The last backup failed: " (parts::short(error)) } }
        @match health::last_complete(&runs) {
            Some(last) => {
                p { "The newest complete backup contains everything up to " (dates::time(last.began_at)) ". It is " (health::age(last, now)) " old." }
                @if health::is_old(last, now) { (parts::alert("Changes since then are not in any backup. Run a backup every day.")) }
            }
            None => div.card.empty {
                h2 { "No backups yet" }
                p { "Run " code { "packhouse backup TO" } " on the server by a timer. The target is a folder on another disk or a bucket." }
            },
        }
        @if !runs.is_empty() {
            p.meta { (parts::count(runs.len() as u64, "backup", "backups")) span { "Complete: " (complete) } span { "Failed: " (failed) } }
            (parts::table("Backups", &["Started", "Outcome", "Location", "Rows", "Files", "Copied"], &html! { @for run in &runs { (one(run)) } }))
            p.soft { "List the backups of a location with " code { "packhouse backup list" } " and check them with " code { "packhouse backup verify" } "." }
        }
    };
    Ok(frame::page(&ctx, Sheet::of("Backups"), &body))
}

fn one(run: &BackupRun) -> Markup {
    html! {
        tr {
            td.tight { (dates::time(run.began_at)) @if let Some(ended) = run.ended_at { " " span.soft.small { (took(ended - run.began_at)) } } }
            td { (outcome(run)) }
            td { (parts::short(&run.place)) " " span.soft.small { (run.id) } }
            td { @if let Some(size) = run.size { (size.rows) } }
            td { @if let Some(size) = run.size { (size.blobs) " " span.soft { (parts::size(size.blob_bytes)) } } }
            td { @if let Some(size) = run.size { (parts::size(size.copied_bytes)) } }
        }
    }
}

fn outcome(run: &BackupRun) -> Markup {
    match (&run.error, run.size, run.under_way) {
        (Some(error), ..) => html! { (parts::tag("failed")) " " (parts::short(error)) },
        (None, Some(_), _) => parts::tag("complete"),
        (None, None, true) => parts::tag("running"),
        (None, None, false) => parts::tag("interrupted"),
    }
}

fn took(ms: i64) -> String {
    format!("{:.1} s", ms.max(0) as f64 / 1000.0)
}
