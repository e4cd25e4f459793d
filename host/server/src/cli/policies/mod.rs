//! `packhouse policies`: calls of policies' components are recorded by the servers of a database, read from there, and run again here. On
//! the database itself, as `repo` and `token` are.

mod replay;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use packhouse_app::recordings::unpack;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, MAX_RULES, OrganizationRow, RecordingId, RecordingRow, RuleRecording,
    RuleRow,
};
use serde_json::{Value, json};

use super::accounts::{ACTOR, Common, Desk, Shown};
use super::print;

#[derive(Debug, Subcommand)]
pub(crate) enum PoliciesCommand {
    /// Record calls of a policy that fail or refuse, to be replayed.
    Record(RecordArguments),
    /// List what was recorded of a policy, or print a recording.
    Recordings(RecordingsArguments),
    /// Run a recorded call again and say where it differs: 0 when it judges as was recorded, 1 when not, 2 when it cannot be run.
    Replay(Box<replay::ReplayArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Whose calls, by name or id
    #[arg(long, value_name = "NAME")]
    policy: String,
    /// So many at most, 1 to 50: the last
    #[arg(long, default_value_t = 10)]
    count: u32,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingsArguments {
    /// Print the file of this recording, for `packhouse policies replay`
    id: Option<String>,
    /// Whose calls, by name or id
    #[arg(long, value_name = "NAME")]
    policy: String,
    #[command(flatten)]
    common: Box<Common>,
}

const RECORDED: &[&str] = &["policy", "count", "armed_until"];
const RECORDING: &[&str] = &["id", "recorded_at", "outcome", "component", "bytes"];

pub(super) async fn run(command: PoliciesCommand) -> anyhow::Result<()> {
    match command {
        PoliciesCommand::Record(arguments) => record(arguments).await,
        PoliciesCommand::Recordings(arguments) => recordings(arguments).await,
        PoliciesCommand::Replay(arguments) => replay::run(*arguments).await,
    }
}

/// Has calls recorded from now on, by every server of the database.
async fn record(arguments: RecordArguments) -> anyhow::Result<()> {
    let RecordArguments { policy, count, common } = arguments;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let rule = rule(&desk, &organization, &policy).await?;
    let event = desk.event(&organization, "record_policy_calls", &rule.name);
    let made = desk.store.record_rule(organization.id, rule.id, count, ACTOR.to_owned(), event).await?;
    let made = made.with_context(|| format!("there are {MAX_RECORDING_SETS} sets of recordings already"))?;
    desk.done(RECORDED, Shown::One(recorded_view(&made))).await
}

/// Lists what was recorded of a policy, or prints one recording.
async fn recordings(arguments: RecordingsArguments) -> anyhow::Result<()> {
    let RecordingsArguments { id, policy, common } = arguments;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let rule = rule(&desk, &organization, &policy).await?;
    if let Some(id) = id {
        let id: RecordingId = id.parse()?;
        let Some(content) = desk.store.rule_recording(organization.id, rule.id, id).await? else {
            bail!("there is no recording {id} of the policy {:?}", rule.name);
        };
        let event = desk.event(&organization, "read_policy_recording", &format!("{} {id}", rule.name));
        if let Some(event) = event {
            desk.store.audit(event).await?;
        }
        desk.store.close().await;
        return print(&String::from_utf8(unpack(&content)?)?);
    }
    let found = desk.store.rule_recordings(organization.id, rule.id, None, MAX_RECORDINGS).await?;
    let items = found.iter().map(recording_view).collect();
    desk.done(RECORDING, Shown::List(items)).await
}

/// The policy of this id, or the only one of this name.
async fn rule(desk: &Desk, organization: &OrganizationRow, named: &str) -> anyhow::Result<RuleRow> {
    let all = desk.store.list_rules(organization.id, None, MAX_RULES).await?;
    let mut found = all.into_iter().filter(|rule| rule.name == named || rule.id.to_string() == named);
    match (found.next(), found.next()) {
        (Some(rule), None) => Ok(rule),
        (None, _) => bail!("there is no policy {named:?} in {}", organization.name),
        (Some(one), Some(other)) => {
            bail!(
                "{named:?} is the name of several policies: name one by its id, as {} or {}",
                one.id,
                other.id
            )
        }
    }
}

fn recorded_view(made: &RuleRecording) -> Value {
    json!({"policy": made.rule.to_string(), "count": made.wanted, "armed_until": made.armed_until})
}

fn recording_view(row: &RecordingRow) -> Value {
    json!({
        "id": row.id.to_string(),
        "recorded_at": row.recorded_at,
        "outcome": row.outcome,
        "component": row.component,
        "bytes": row.bytes,
    })
}
