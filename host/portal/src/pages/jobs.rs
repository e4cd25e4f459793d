//! `/jobs`: the background jobs of this server, for its operators.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::jobs;
use packhouse_app::jobs::JobStatus;

use super::Routes;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

pub(super) fn routes() -> Routes {
    vec![("/jobs", visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let jobs = jobs::list(&ctx.actor)?;
    let failing = jobs.iter().filter(|job| job.last_error.is_some()).count();
    let columns = ["Job", "State", "Every", "Last started", "Last ended", "Next"];
    let body = html! {
        @if failing == 0 {
            p { "No background job of this server fails." }
        } @else {
            (parts::alert(&format!("Failing background jobs: {failing} of {}. The server tries each of them again.", jobs.len())))
        }
        (parts::table("Jobs", &columns, &html! { @for job in &jobs { (row(job)) } }))
        p.soft { "Each server has its own jobs; this page shows those of the server that answered." }
    };
    Ok(frame::page(&ctx, Sheet::of("Jobs"), &body))
}

fn row(job: &JobStatus) -> Markup {
    html! {
        tr {
            th scope="row" { (job.name) }
            td { (parts::tag(job.state())) @if let Some(error) = &job.last_error { " " (parts::short(error)) } }
            td.tight { (job.period_s()) " s" }
            td.tight { @if let Some(at) = job.last_started_at { (dates::time(at)) } @else { "not yet" } }
            td.tight { @if let Some(at) = job.last_ended_at { (dates::time(at)) } @else { "not yet" } }
            td.tight { @if let Some(at) = job.next_at { (dates::time(at)) } @else { "-" } }
        }
    }
}
