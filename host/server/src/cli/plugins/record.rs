//! `packhouse plugins record` and `recordings`: calls of a repository's plugin are recorded by the servers of its database, and read from
//! there. On the database itself, as `repo` and `token` are.

use anyhow::{Context, bail};
use clap::Args;
use packhouse_app::recordings::unpack;
use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecordingSet, RecordingId, RecordingRow, RecordingSet,
};
use serde_json::{Value, json};

use crate::cli::accounts::{ACTOR, Common, Desk, Shown};
use crate::cli::print;

#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// Whose calls, by name
    #[arg(long, value_name = "NAME")]
    repository: String,
    /// So many at most, 1 to 50: the first, or of failing ones the last
    #[arg(long, default_value_t = 10)]
    count: u32,
    /// Only calls that fail: no answer, or one of 500 and above
    #[arg(long)]
    only_failures: bool,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingsArguments {
    /// Print the file of this recording, for `packhouse plugins replay`
    id: Option<String>,
    /// Whose calls, by name
    #[arg(long, value_name = "NAME")]
    repository: String,
    #[command(flatten)]
    common: Box<Common>,
}

const SET: &[&str] = &["id", "format", "repository", "count", "only_failures"];
const RECORDING: &[&str] = &["id", "set", "recorded_at", "function", "outcome", "component", "cut", "bytes"];
/// More than there are.
const ALL: u32 = MAX_RECORDING_SETS * MAX_RECORDINGS;

/// Has calls recorded from now on. The servers of the database begin within two seconds.
pub(super) async fn record(arguments: RecordArguments) -> anyhow::Result<()> {
    let RecordArguments { repository, count, only_failures, common } = arguments;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, &repository).await?;
    let new = NewRecordingSet {
        organization: organization.id,
        format: row.format,
        repository: row.id,
        wanted: count,
        only_failures,
        created_by: ACTOR.to_owned(),
    };
    let event = desk.event(&organization, "record_plugin_calls", &row.name);
    let made = desk.store.create_recording_set(new, event).await?;
    let set = made.with_context(|| format!("there are {MAX_RECORDING_SETS} sets of recordings already"))?;
    desk.done(SET, Shown::One(set_view(&set))).await
}

/// Lists what was recorded of a repository, or prints one recording.
pub(super) async fn recordings(arguments: RecordingsArguments) -> anyhow::Result<()> {
    let RecordingsArguments { id, repository, common } = arguments;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, &repository).await?;
    if let Some(id) = id {
        let id: RecordingId = id.parse()?;
        let Some(content) = desk.store.recording(organization.id, &row.format, id).await? else {
            bail!("there is no recording {id} of the format {}", row.format);
        };
        let event = desk.event(&organization, "read_plugin_recording", &format!("{} {id}", row.format));
        if let Some(event) = event {
            desk.store.audit(event).await?;
        }
        desk.store.close().await;
        return print(&String::from_utf8(unpack(&content)?)?);
    }
    let found = desk.store.recordings(organization.id, &row.format, None, None, ALL).await?;
    let items = found.iter().filter(|found| found.repository == row.id).map(recording_view).collect();
    desk.done(RECORDING, Shown::List(items)).await
}

fn set_view(set: &RecordingSet) -> Value {
    json!({
        "id": set.id.to_string(),
        "format": set.format,
        "repository": set.repository.to_string(),
        "count": set.wanted,
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
