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
    let mut jobs = jobs::list(&ctx.actor)?;
    // The failing ones come first; all others stay in the order of their names.
    jobs.sort_by_key(|job| job.last_error.is_none());
    let failing = jobs.iter().filter(|job| job.last_error.is_some()).count();
    let running = jobs.iter().filter(|job| job.is_running).count();
    let columns = ["Job", "State", "Every", "Last started", "Last ended", "Next"];
    let body = html! {
        @if failing == 0 {
            p { "No background job of this server fails." }
        } @else {
            (parts::alert(&format!("Failing background jobs: {failing} of {}. The server tries each of them again.", jobs.len())))
        }
        p.meta {
            (parts::count(jobs.len() as u64, "job", "jobs"))
            span { "Running: " (running) }
            span { a href="/health" { "Health of the server" } }
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
            td.tight { (period(job.period_s())) }
            td.tight { @if let Some(at) = job.last_started_at { (dates::time(at)) } @else { "not yet" } }
            td.tight { @if let Some(at) = job.last_ended_at { (dates::time(at)) } @else { "not yet" } }
            td.tight { @if let Some(at) = job.next_at { (dates::time(at)) } @else { "-" } }
        }
    }
}

/// Returns the time between two runs in its largest whole unit.
fn period(seconds: u64) -> String {
    for (length, unit) in [(86_400, "d"), (3_600, "h"), (60, "min")] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{} {unit}", seconds / length);
        }
    }
    format!("{seconds} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_its_largest_whole_unit() {
        for (seconds, text) in
            [(1, "1 s"), (60, "1 min"), (90, "90 s"), (3_600, "1 h"), (5_400, "90 min"), (86_400, "1 d")]
        {
            assert_eq!(period(seconds), text);
        }
    }
}
