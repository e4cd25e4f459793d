//! `packhouse policies`: asks servers to record calls of policy components, lists recordings, and
//! replays them in this process. Like `repo` and `token`, it works directly on the database or,
//! with `--server`, through the API.

mod remote;
mod replay;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use packhouse_app::recordings::unpack;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, MAX_RULES, OrganizationRow, RecordingId, RecordingRow, RuleRecording,
    RuleRow,
};
use serde_json::{Value, json};

use super::accounts::{ACTOR, CliContext, CommandOutput, CommandTarget, Common};
use super::print;

#[derive(Debug, Subcommand)]
pub(crate) enum PoliciesCommand {
    /// Record failing and refusing calls of a policy for a replay
    Record(RecordArguments),
    /// List the recordings of a policy, or print one recording
    Recordings(RecordingsArguments),
    /// Run a recorded call again and report differences; exits with 0 for the same judgement, 1 for
    /// another one, 2 if the call cannot be run
    Replay(Box<replay::ReplayArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Name or id of the policy
    #[arg(long, value_name = "NAME")]
    policy: String,
    /// Number of most recent calls to record, 1 to 50
    #[arg(long, default_value_t = 10)]
    count: u32,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingsArguments {
    /// Print the file of this recording, for `packhouse policies replay`
    id: Option<String>,
    /// Name or id of the policy
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

/// Makes every server of the database record calls from now on.
async fn record(arguments: RecordArguments) -> anyhow::Result<()> {
    let RecordArguments { policy, count, common } = arguments;
    let target = CommandTarget::open(*common).await?;
    let made = match &target {
        CommandTarget::Database(context) => record_in_database(context, &policy, count).await?,
        CommandTarget::Server(server) => remote::record(server, &policy, count).await?,
    };
    target.finish(RECORDED, CommandOutput::One(made)).await
}

async fn record_in_database(context: &CliContext, policy: &str, count: u32) -> anyhow::Result<Value> {
    let organization = context.organization().await?;
    let rule = rule(context, &organization, policy).await?;
    let event = context.event(&organization, "record_policy_calls", &rule.name);
    let made = context.store.record_rule(organization.id, rule.id, count, ACTOR.to_owned(), event).await?;
    let made = made.with_context(|| format!("there are already {MAX_RECORDING_SETS} sets of recordings"))?;
    Ok(recorded_view(&made))
}

/// Lists the recordings of a policy, or prints one.
async fn recordings(arguments: RecordingsArguments) -> anyhow::Result<()> {
    let RecordingsArguments { id, policy, common } = arguments;
    let context = match CommandTarget::open(*common).await? {
        CommandTarget::Database(context) => *context,
        CommandTarget::Server(server) => return remote::recordings(&server, &policy, id).await,
    };
    let organization = context.organization().await?;
    let rule = rule(&context, &organization, &policy).await?;
    if let Some(id) = id {
        let id: RecordingId = id.parse()?;
        let Some(content) = context.store.rule_recording(organization.id, rule.id, id).await? else {
            bail!("there is no recording {id} of the policy {:?}", rule.name);
        };
        let event = context.event(&organization, "read_policy_recording", &format!("{} {id}", rule.name));
        if let Some(event) = event {
            context.store.audit(event).await?;
        }
        context.store.close().await;
        return print(&String::from_utf8(unpack(&content)?)?);
    }
    let found = context.store.rule_recordings(organization.id, rule.id, None, MAX_RECORDINGS).await?;
    let items = found.iter().map(recording_view).collect();
    context.finish(RECORDING, CommandOutput::List(items)).await
}

/// Returns the only one of the policies that were found by `named`. `id` returns the id of one.
fn only<T>(found: Vec<T>, named: &str, id: impl Fn(&T) -> String, organization: &str) -> anyhow::Result<T> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(rule), None) => Ok(rule),
        (None, _) => bail!("there is no policy {named:?} in {organization}"),
        (Some(one), Some(other)) => {
            let (one, other) = (id(&one), id(&other));
            bail!("{named:?} is the name of several policies: use an id, such as {one} or {other}")
        }
    }
}

/// Finds the policy with this id, or the only one with this name.
async fn rule(context: &CliContext, organization: &OrganizationRow, named: &str) -> anyhow::Result<RuleRow> {
    let all = context.store.list_rules(organization.id, None, MAX_RULES).await?;
    let found = all.into_iter().filter(|rule| rule.name == named || rule.id.to_string() == named);
    only(found.collect(), named, |rule| rule.id.to_string(), &organization.name)
}

fn recorded_view(made: &RuleRecording) -> Value {
    json!({"policy": made.rule.to_string(), "count": made.max_recordings, "armed_until": made.armed_until})
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
