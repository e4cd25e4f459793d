//! Repositories as plugins see them. The host merges their settings from several sources and writes
//! them as JSON, once for each change.

use std::sync::Arc;

use packhouse_config::repository_settings;
use packhouse_runtime::{Plugin, RepositoryView};
use packhouse_store::{RepositoryId, RepositoryRow};
use quick_cache::sync::Cache;

/// Maximum number of cached views.
const MAX_VIEWS: usize = 10_000;

pub(crate) struct RepositoryViews {
    /// Views by repository and plugin. Each view comes with the revision of its settings.
    views: Cache<(RepositoryId, u64), Arc<(u64, RepositoryView)>>,
}

impl Default for RepositoryViews {
    fn default() -> Self {
        Self { views: Cache::new(MAX_VIEWS) }
    }
}

impl RepositoryViews {
    /// Returns the view of this repository at its current revision, with the settings that this
    /// plugin knows.
    pub(crate) fn of(&self, row: &RepositoryRow, plugin: &Plugin) -> RepositoryView {
        let key = (row.id, plugin.number());
        let cached = self.views.get(&key).filter(|cached| cached.0 == row.settings_revision);
        let made = || {
            let made =
                Arc::new((row.settings_revision, repository_settings::view(row, plugin.description())));
            self.views.insert(key, Arc::clone(&made));
            made
        };
        let cached = cached.unwrap_or_else(made);
        RepositoryView { revision: row.revision, ..cached.1.clone() }
    }
}
