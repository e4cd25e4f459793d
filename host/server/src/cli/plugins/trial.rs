//! `packhouse plugins shadow`, `canary` and `trial`: a component beside what its format runs, on the database itself, beside a running
//! server or without one. Servers follow within a second.

use clap::Args;
use packhouse_app::plugins::MAX_FAILURES;
use packhouse_runtime::TrialMode;
use packhouse_store::{NewTrial, TrialRow, TrialTimes};
use serde_json::{Value, json};

use crate::cli::accounts::{ACTOR, Common, Desk, Shown};
use crate::cli::opened::over;

/// A component whose answers are compared.
#[derive(Debug, Args)]
pub(crate) struct Shadow {
    #[command(flatten)]
    tried: Tried,
}

/// A component that answers clients.
#[derive(Debug, Args)]
pub(crate) struct Canary {
    #[command(flatten)]
    tried: Tried,
    /// Take it back once more calls than this failed
    #[arg(long, value_name = "N", default_value_t = MAX_FAILURES)]
    max_failures: u64,
    /// It may ask more than the one that runs
    #[arg(long)]
    accept_changes: bool,
}

#[derive(Debug, Args)]
struct Tried {
    /// The format
    format: String,
    /// The component, as `plugins list` prints it
    digest: String,
    /// Only in this repository, by its name; may be given several times
    #[arg(long, value_name = "NAME")]
    repository: Vec<String>,
    /// The share of clients, 1 to 100, chosen by their credentials
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    #[command(flatten)]
    common: Box<Common>,
}

/// A trial to be shown, or to be ended.
#[derive(Debug, Args)]
pub(crate) struct TrialOf {
    /// The format
    format: String,
    /// Take it back
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    common: Box<Common>,
}

const COLUMNS: &[&str] = &[
    "format",
    "mode",
    "state",
    "digest",
    "percent",
    "calls",
    "equal",
    "different",
    "failed",
    "unanswered",
    "changed",
    "dropped",
    "active_mean_ms",
    "candidate_mean_ms",
    "recordings",
];

/// Compares from now on what the component would answer.
pub(super) async fn shadow(asked: Shadow) -> anyhow::Result<()> {
    begin(asked.tried, TrialMode::Shadow, None, false).await
}

/// Lets the component answer from now on.
pub(super) async fn canary(asked: Canary) -> anyhow::Result<()> {
    let Canary { tried, max_failures, accept_changes } = asked;
    begin(tried, TrialMode::Canary, Some(max_failures), accept_changes).await
}

async fn begin(
    tried: Tried,
    mode: TrialMode,
    max_failures: Option<u64>,
    accept_changes: bool,
) -> anyhow::Result<()> {
    let Tried { format, digest, repository, percent, common } = tried;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let mut chosen = Vec::new();
    for name in &repository {
        chosen.push(desk.repository(&organization, name).await?.id);
    }
    let app = over(desk.config.clone(), desk.store.clone()).await?;
    let new = NewTrial {
        format,
        digest,
        mode: mode.word().to_owned(),
        organization: organization.id,
        repositories: (!chosen.is_empty()).then_some(chosen),
        percent,
        max_failures,
        started_by: ACTOR.to_owned(),
    };
    let event = |format: &str| desk.event(&organization, "try_plugin", format);
    let row = app.try_plugin(new, accept_changes, event).await?;
    desk.done(COLUMNS, Shown::One(shown(&row, &[]))).await
}

/// Shows how the component does that is tried, or takes it back.
pub(super) async fn trial(asked: TrialOf) -> anyhow::Result<()> {
    let TrialOf { format, end, common } = asked;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let app = over(desk.config.clone(), desk.store.clone()).await?;
    let row = app.find_trial(&format).await?;
    let mut recordings = desk.store.trial_recordings(row.id, false).await?;
    recordings.extend(desk.store.trial_recordings(row.id, true).await?);
    if end {
        app.end_trial(&format, desk.event(&organization, "end_plugin_trial", &format)).await?;
    }
    let recordings: Vec<String> = recordings.iter().map(ToString::to_string).collect();
    desk.done(COLUMNS, Shown::One(shown(&row, &recordings))).await
}

fn shown(row: &TrialRow, recordings: &[String]) -> Value {
    let counts = &row.counts;
    let mean =
        |times: TrialTimes| (times.calls > 0).then(|| times.total_us as f64 / times.calls as f64 / 1e3);
    json!({
        "format": row.new.format, "mode": row.new.mode, "digest": row.new.digest, "percent": row.new.percent,
        "state": if row.ended_at.is_some() { "taken_back" } else { "running" },
        "calls": counts.calls, "equal": counts.equal, "different": counts.different, "failed": counts.failed,
        "unanswered": counts.unanswered, "changed": counts.changed, "dropped": counts.dropped,
        "active_mean_ms": mean(counts.active), "candidate_mean_ms": mean(counts.candidate),
        "recordings": recordings,
    })
}
