//! The life cycle of formats' components as rows: their bytes, which one each format runs, what ran before, the repositories that
//! are pinned to one, and which one is tried. What may be done is judged by the caller.
//!
//! Each change takes the number of `plugin_changes` on, and so happens after the other: whoever saw a number and changes something
//! on the ground of it says so, and is told where something came between.

mod change;
mod components;
mod rows;
mod trials;

pub use change::FormatChange;
pub use components::{ComponentRow, NewComponent};
pub use rows::FormatPlugin;
pub use trials::{NewTrial, TrialCounts, TrialRow, TrialTimes};

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;
use rows::format_plugin;

/// Components of what ran before that a format keeps.
pub const PLUGIN_HISTORY: usize = 10;
/// Components that a format keeps at most, besides those that run or ran.
pub const PLUGIN_SPARES: usize = 10;

/// What all formats run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginState {
    /// The number of changes until now.
    pub number: i64,
    /// Formats of which something was said.
    pub formats: Vec<FormatPlugin>,
    /// Repositories with the component that each is pinned to.
    pub pins: Vec<(RepositoryId, String)>,
    /// What is tried beside them, and what was until it was taken back.
    pub trials: Vec<TrialRow>,
}

impl PluginState {
    /// The trial of this format, unless it was taken back.
    #[must_use]
    pub fn trial(&self, format: &str) -> Option<&TrialRow> {
        self.trials.iter().find(|trial| trial.new.format == format && trial.ended_at.is_none())
    }

    /// What is said of this format.
    #[must_use]
    pub fn of(&self, format: &str) -> Option<&FormatPlugin> {
        self.formats.iter().find(|row| row.format == format)
    }
}

impl Store {
    /// How often formats' components, activations or pins were changed: cheap enough to be asked every half second.
    #[boxed]
    pub async fn plugin_changes(&self) -> Result<i64, StoreError> {
        let rows = self.inner.db.fetch_uncounted("SELECT number FROM plugin_changes", values![]).await?;
        rows.first().map_or(Ok(0), |row| row.columns().int("number"))
    }

    /// What every format runs. The number is read first, so that what comes in between is seen as a later change.
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
            trials: self.trials().await?,
        })
    }
}
