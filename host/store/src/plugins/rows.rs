//! Rows of active plugins, and the number that each change increments.

use crate::db::{Row, Transaction, values};
use crate::error::StoreError;

/// The plugin that a format runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatPlugin {
    pub format: String,
    /// Digest of the activated component, as `sha256:` and hex; `None` for the component in the
    /// plugin folder.
    pub active: Option<String>,
    /// Formerly active components, the latest last.
    pub history: Vec<String>,
}

/// Increments the number of changes. Concurrent callers wait for the end of this transaction.
pub(super) async fn next_number(transaction: &mut Transaction) -> Result<i64, StoreError> {
    let next = "INSERT INTO plugin_changes (id, number) VALUES (1, 1) \
                ON CONFLICT (id) DO UPDATE SET number = plugin_changes.number + 1 RETURNING number";
    let row = transaction.fetch_one(next, values![]).await?;
    row.map_or(Ok(0), |row| row.columns().int("number"))
}

/// Row of this format, as it is in this transaction.
pub(super) async fn format_for_change(
    transaction: &mut Transaction,
    format: &str,
) -> Result<FormatPlugin, StoreError> {
    let find = "SELECT format, active, history FROM plugin_formats WHERE format = $1";
    match transaction.fetch_one(find, values![format]).await? {
        Some(row) => format_plugin(&row),
        None => Ok(FormatPlugin { format: format.to_owned(), ..FormatPlugin::default() }),
    }
}

pub(super) fn format_plugin(row: &Row) -> Result<FormatPlugin, StoreError> {
    let mut columns = row.columns();
    let (format, active) = (columns.text("format")?, columns.opt_text("active")?);
    let history = columns.text("history")?;
    let history = serde_json::from_str(&history)
        .map_err(|error| StoreError::Corrupt(format!("the history of the format {format}: {error}")))?;
    Ok(FormatPlugin { format, active, history })
}
