//! `/backups`: which backups were taken of the server, for its operators.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::backups;
use packhouse_store::BackupRun;

use super::Routes;
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, dates, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/backups", visit::page(show))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    let runs = backups::list(&seat.actor).await?;
    let body = html! {
        @match runs.iter().find(|run| run.size.is_some()) {
            Some(last) => p { "The newest whole backup has everything up to " (dates::time(last.began_at)) "." },
            None => div.card.empty {
                h2 { "There is no backup" }
                p { "Run " code { "packhouse backup TO" } " beside the server, by a timer: to a folder on another disk, or to a bucket." }
            },
        }
        @if !runs.is_empty() {
            (parts::table("Backups", &["Begun", "Outcome", "Where", "Rows", "Files", "Copied"], &html! { @for run in &runs { (one(run)) } }))
            p.soft { "What a place holds, and whether it is whole, is said by " code { "packhouse backup list" } " and " code { "packhouse backup verify" } "." }
        }
    };
    Ok(frame::page(&seat, Sheet::of("Backups"), &body))
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
        (None, Some(_), _) => parts::tag("whole"),
        (None, None, true) => parts::tag("under way"),
        (None, None, false) => parts::tag("broken off"),
    }
}

fn took(ms: i64) -> String {
    format!("{:.1} s", ms.max(0) as f64 / 1000.0)
}
