//! Plugin components of formats as rows: their bytes, the active one of each format, the history,
//! and pinned repositories. The caller decides which changes are allowed.
//!
//! Each change increments `plugin_changes`, so changes are strictly ordered. A caller states the
//! number on which its decision is based, and learns if another change came first.

mod change;
mod components;
mod rows;

pub use change::FormatChange;
pub use components::{ComponentRow, NewComponent};
pub use rows::FormatPlugin;

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;
use rows::format_plugin;

/// Maximum number of formerly active components in a format's history.
pub const PLUGIN_HISTORY: usize = 10;
/// Maximum number of other components that a format retains.
pub const PLUGIN_SPARES: usize = 10;

/// Active plugins of all formats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginState {
    /// Number of changes so far.
    pub number: i64,
    /// Formats with a row of their own.
    pub formats: Vec<FormatPlugin>,
    /// Pinned repositories, each with its component.
    pub pins: Vec<(RepositoryId, String)>,
}

impl PluginState {
    /// The row of this format.
    #[must_use]
    pub fn of(&self, format: &str) -> Option<&FormatPlugin> {
        self.formats.iter().find(|row| row.format == format)
    }
}

impl Store {
    /// Number of changes of components, activations and pins. The query is cheap enough for a call
    /// every half second.
    #[boxed]
    pub async fn plugin_changes(&self) -> Result<i64, StoreError> {
        let rows = self.inner.db.fetch_uncounted("SELECT number FROM plugin_changes", values![]).await?;
        rows.first().map_or(Ok(0), |row| row.columns().int("number"))
    }

    /// Active plugins of all formats. Reads the number first, so that the next check of the number
    /// detects a change in between.
    #[boxed]
    pub async fn plugin_state(&self) -> Result<PluginState, StoreError> {
        let number = self.plugin_changes().await?;
        let list = "SELECT format, active, history FROM plugin_formats ORDER BY format";
        let formats = self.inner.db.fetch_uncounted(list, values![]).await?;
        let pinned = "SELECT id, plugin FROM repositories WHERE plugin IS NOT NULL ORDER BY id";
        let pins = self.inner.db.fetch_uncounted(pinned, values![]).await?;
        let pin = |row: &Row| {
            let mut columns = row.columns();
            Ok((RepositoryId(columns.int("id")?), columns.text("plugin")?))
        };
        Ok(PluginState {
            number,
            formats: formats.iter().map(format_plugin).collect::<Result<_, StoreError>>()?,
            pins: pins.iter().map(pin).collect::<Result<_, StoreError>>()?,
        })
    }
}
