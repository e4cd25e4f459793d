//! `/health`: the state of this server at one glance, for its operators. Also the parts that other
//! pages show of it.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::server_health::{self, ServerHealth};
use packhouse_app::readiness::{BLOBS, CERTIFICATE, CLOCK, DATABASE, DISK, PLUGIN, Problem, Status};
use packhouse_store::{BackupRun, DiskRoom};

use super::Routes;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

/// Age of the newest complete backup from which it needs attention, in ms.
const OLD_BACKUP_MS: i64 = 2 * dates::DAY_MS;
/// A disk needs attention if less than this part of it is free.
const FREE_PART: u64 = 10;

pub(super) fn routes() -> Routes {
    vec![("/health", visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let health = server_health::show(&ctx.actor).await?;
    let problems = problems(&health, ctx.actor.now, true);
    let body = html! {
        @if problems.is_empty() { p { "Every part of this server works." } } @else {
            section.card.attention aria-labelledby="problems" {
                h2 id="problems" { "Needs attention (" (problems.len()) ")" }
                ul { @for problem in &problems { li { (problem) } } }
            }
        }
        section.card aria-labelledby="server" { h2 id="server" { "Server" } (glance(&health, ctx.actor.now)) }
        p.soft { "This page shows the server that answered. Monitoring reads the same from " code { "/readyz" } " and " code { "/metrics" } "." }
    };
    Ok(frame::page(&ctx, Sheet::of("Health"), &body))
}

/// Returns a sentence for each part of the server that needs attention. A server without packages
/// does not need a backup (`needs_backup`).
pub(super) fn problems(health: &ServerHealth, now: i64, needs_backup: bool) -> Vec<Markup> {
    let mut problems: Vec<Markup> = health.report.degraded.iter().map(degraded).collect();
    let failing = failing_jobs(health);
    if failing > 0 {
        problems.push(html! { a href="/jobs" { "Failing background jobs: " (failing) " of " (health.jobs.len()) } ". The server tries each of them again." });
    }
    let reported = health.report.degraded.iter().any(|problem| problem.what == DISK);
    if let Some(disk) = health.disk.filter(|disk| !reported && is_low(disk)) {
        problems.push(html! { "The disk of the data folder has only " (parts::size(disk.available)) " left of " (parts::size(disk.total)) "." });
    }
    problems.extend(backup_problem(&health.backups, now, needs_backup));
    problems
}

fn degraded(problem: &Problem) -> Markup {
    html! { strong { (part(problem.what)) } " since " (dates::time(problem.since)) ": " (parts::short(&problem.detail)) }
}

/// Name of a part of the server for people.
fn part(what: &'static str) -> &'static str {
    match what {
        DATABASE => "Database",
        BLOBS => "Blob storage",
        DISK => "Disk",
        PLUGIN => "Plugin",
        CLOCK => "Clock",
        CERTIFICATE => "Certificate",
        _ => "Readiness checks",
    }
}

/// Describes what is wrong with the backups, of which the newest comes first.
fn backup_problem(runs: &[BackupRun], now: i64, needs_backup: bool) -> Option<Markup> {
    let link = |text: &str| html! { a href="/backups" { (text) } };
    if let Some(error) = last_error(runs) {
        return Some(html! { (link("The last backup failed")) ": " (parts::short(error)) });
    }
    match last_complete(runs) {
        None if needs_backup => Some(html! { (link("There is no complete backup")) "." }),
        Some(last) if is_old(last, now) => {
            Some(html! { (link("The newest complete backup")) " is " (age(last, now)) " old." })
        }
        _ => None,
    }
}

/// Returns why the last backup failed, if it did.
pub(super) fn last_error(runs: &[BackupRun]) -> Option<&str> {
    runs.iter().find(|run| !run.under_way)?.error.as_deref()
}

/// Returns the newest complete backup.
pub(super) fn last_complete(runs: &[BackupRun]) -> Option<&BackupRun> {
    runs.iter().find(|run| run.size.is_some())
}

/// Returns whether a backup is older than it should be.
pub(super) fn is_old(run: &BackupRun, now: i64) -> bool {
    now.saturating_sub(run.began_at) > OLD_BACKUP_MS
}

/// Returns the age of a backup in words.
pub(super) fn age(run: &BackupRun, now: i64) -> String {
    duration(now.saturating_sub(run.began_at))
}

fn failing_jobs(health: &ServerHealth) -> usize {
    health.jobs.iter().filter(|job| job.last_error.is_some()).count()
}

fn is_low(disk: &DiskRoom) -> bool {
    disk.available < disk.total / FREE_PART
}

/// Builds the list of the server's parts with their state, and links to their pages.
pub(super) fn glance(health: &ServerHealth, now: i64) -> Markup {
    let state = match health.report.status {
        Status::Ready => "ready",
        Status::Degraded => "degraded",
        Status::Unavailable => "unavailable",
    };
    let failing = failing_jobs(health);
    html! {
        dl {
            dt { "State" }
            dd {
                (parts::tag(state))
                @if let Some(age) = health.report.age_ms { " " span.soft.small { "checked " (age / 1000) " s ago" } }
            }
            dt { "Disk" }
            dd {
                @match &health.disk {
                    None => "unknown",
                    Some(disk) => {
                        (parts::size(disk.available)) " free of " (parts::size(disk.total))
                        (share(disk.total.saturating_sub(disk.available), disk.total))
                    }
                }
            }
            dt { a href="/jobs" { "Jobs" } }
            dd {
                (health.jobs.len())
                @if failing > 0 { " " (parts::tag("failing")) " " (failing) } @else { ", none fails" }
            }
            dt { a href="/backups" { "Backups" } }
            dd {
                @match last_complete(&health.backups) {
                    Some(last) => { "newest complete " (dates::time(last.began_at)) ", " (age(last, now)) " ago" }
                    None => "none yet",
                }
            }
        }
    }
}

/// Draws a bar for a part of a whole. The text beside it states the numbers.
pub(super) fn share(part: u64, whole: u64) -> Markup {
    let percent = if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 100.0).clamp(0.5, 100.0) };
    html! {
        svg.share viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
            rect.whole width="100" height="4" {}
            rect width=(format!("{percent:.1}")) height="4" {}
        }
    }
}

/// Returns a duration in ms in words, in its largest unit.
pub(super) fn duration(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    let (number, unit) = match minutes {
        0 => return "less than a minute".to_owned(),
        1..=119 => (minutes, "minute"),
        120..=2879 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_its_largest_unit() {
        for (minutes, words) in [
            (0, "less than a minute"),
            (1, "1 minute"),
            (119, "119 minutes"),
            (120, "2 hours"),
            (2879, "47 hours"),
            (2880, "2 days"),
        ] {
            assert_eq!(duration(minutes * 60_000), words);
        }
        assert_eq!(duration(-1), "less than a minute");
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        assert!(share(1, 4).into_string().contains("width=\"25.0\""));
        assert!(share(0, 0).into_string().contains("width=\"0.0\""));
    }
}
