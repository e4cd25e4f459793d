//! Repositories as plugins are handed them. Their settings are put together from several sources and written as JSON: that is done once for
//! each change of them.

use std::sync::Arc;

use packhouse_config::repository_settings;
use packhouse_runtime::{Plugin, RepositoryView};
use packhouse_store::{RepositoryId, RepositoryRow};
use quick_cache::sync::Cache;

/// Repositories whose view is kept.
const KEPT: usize = 10_000;

/// See the module.
pub(crate) struct RepositoryViews {
    /// By repository and plugin, each with the revision of the settings that it was made of.
    views: Cache<(RepositoryId, u64), Arc<(u64, RepositoryView)>>,
}

impl Default for RepositoryViews {
    fn default() -> Self {
        Self { views: Cache::new(KEPT) }
    }
}

impl RepositoryViews {
    /// The view of this repository, of its present revision, with the settings that this plugin knows.
    pub(crate) fn of(&self, row: &RepositoryRow, plugin: &Plugin) -> RepositoryView {
        let key = (row.id, plugin.number());
        let kept = self.views.get(&key).filter(|kept| kept.0 == row.settings_revision);
        let made = || {
            let made =
                Arc::new((row.settings_revision, repository_settings::view(row, plugin.description())));
            self.views.insert(key, Arc::clone(&made));
            made
        };
        let kept = kept.unwrap_or_else(made);
        RepositoryView { revision: row.revision, ..kept.1.clone() }
    }
}
