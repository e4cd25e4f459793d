//! `packhouse plugins record` and `recordings`: ask servers to record calls of a repository's
//! plugin, and read the recordings. Like `repo` and `token`, they work directly on the database or,
//! with `--server`, through the API.

use anyhow::{Context, bail};
use clap::Args;
use packhouse_app::recordings::unpack;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecordingSet, RecordingId, RecordingRow, RecordingSet,
};
use serde_json::{Value, json};

use super::remote;
use crate::cli::accounts::{ACTOR, CommandOutput, CommandTarget, Common};
use crate::cli::print;

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Name of the repository
    #[arg(long, value_name = "NAME")]
    repository: String,
    /// Number of calls to record, 1 to 50: the first ones, or with --only-failures the most recent
    /// ones
    #[arg(long, default_value_t = 10)]
    count: u32,
    /// Record only failing calls: without an answer, or with status 500 or above
    #[arg(long)]
    only_failures: bool,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingsArguments {
    /// Print the file of this recording, for `packhouse plugins replay`
    id: Option<String>,
    /// Name of the repository
    #[arg(long, value_name = "NAME")]
    repository: String,
    #[command(flatten)]
    common: Box<Common>,
}

const SET: &[&str] = &["id", "format", "repository", "count", "only_failures"];
const RECORDING: &[&str] = &["id", "set", "recorded_at", "function", "outcome", "component", "cut", "bytes"];
/// A limit above the number of recordings that can exist.
const ALL: u32 = MAX_RECORDING_SETS * MAX_RECORDINGS;

/// Starts recording calls. The servers of the database begin within two seconds.
pub(super) async fn record(arguments: RecordArguments) -> anyhow::Result<()> {
    let RecordArguments { repository, count, only_failures, common } = arguments;
    let context = match CommandTarget::open(*common).await? {
        CommandTarget::Database(context) => *context,
        CommandTarget::Server(server) => {
            let made = remote::record(&server, &repository, count, only_failures).await?;
            return server.finish(SET, CommandOutput::One(made));
        }
    };
    let organization = context.organization().await?;
    let row = context.repository(&organization, &repository).await?;
    let new = NewRecordingSet {
        organization: organization.id,
        format: row.format,
        repository: row.id,
        max_recordings: count,
        only_failures,
        created_by: ACTOR.to_owned(),
    };
    let event = context.event(&organization, "record_plugin_calls", &row.name);
    let made = context.store.create_recording_set(new, event).await?;
    let set = made.with_context(|| format!("there are already {MAX_RECORDING_SETS} sets of recordings"))?;
    context.finish(SET, CommandOutput::One(set_view(&set))).await
}

/// Lists the recordings of a repository, or prints one.
pub(super) async fn recordings(arguments: RecordingsArguments) -> anyhow::Result<()> {
    let RecordingsArguments { id, repository, common } = arguments;
    let context = match CommandTarget::open(*common).await? {
        CommandTarget::Database(context) => *context,
        CommandTarget::Server(server) => {
            return match id {
                Some(id) => print(&remote::recording(&server, &repository, &id).await?),
                None => {
                    let items = remote::recordings(&server, &repository).await?;
                    server.finish(RECORDING, CommandOutput::List(items))
                }
            };
        }
    };
    let organization = context.organization().await?;
    let row = context.repository(&organization, &repository).await?;
    if let Some(id) = id {
        let id: RecordingId = id.parse()?;
        let Some(content) = context.store.recording(organization.id, &row.format, id).await? else {
            bail!("there is no recording {id} of the format {}", row.format);
        };
        let event = context.event(&organization, "read_plugin_recording", &format!("{} {id}", row.format));
        if let Some(event) = event {
            context.store.audit(event).await?;
        }
        context.store.close().await;
        return print(&String::from_utf8(unpack(&content)?)?);
    }
    let found = context.store.recordings(organization.id, &row.format, None, None, ALL).await?;
    let items = found.iter().filter(|found| found.repository == row.id).map(recording_view).collect();
    context.finish(RECORDING, CommandOutput::List(items)).await
}

fn set_view(set: &RecordingSet) -> Value {
    json!({
        "id": set.id.to_string(),
        "format": set.format,
        "repository": set.repository.to_string(),
        "count": set.max_recordings,
        "only_failures": set.only_failures,
        "armed_until": set.armed_until,
    })
}

fn recording_view(row: &RecordingRow) -> Value {
    json!({
        "id": row.id.to_string(),
        "set": row.set.to_string(),
        "recorded_at": row.recorded_at,
        "function": row.function,
        "outcome": row.outcome,
        "component": row.component,
        "cut": row.is_cut,
        "bytes": row.bytes,
    })
}
