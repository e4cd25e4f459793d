//! Which component serves what, at one moment. It is exchanged as a whole; a request keeps the plugin that it found to its end,
//! whatever is activated meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use packhouse_store::RepositoryId;

use crate::description::Claim;
use crate::plugin::Plugin;

/// See the module.
#[derive(Clone, Default)]
pub struct PluginSet {
    /// The one that each format runs, sorted by format.
    plugins: Vec<Arc<Plugin>>,
    /// By repository the one that it is pinned to, which is of its format.
    pinned: HashMap<RepositoryId, Arc<Plugin>>,
    /// Those that are loaded and serve nothing yet.
    ready: Vec<Arc<Plugin>>,
}

impl PluginSet {
    /// Of these, one of each format.
    pub fn new(
        plugins: impl IntoIterator<Item = Arc<Plugin>>,
        pinned: HashMap<RepositoryId, Arc<Plugin>>,
    ) -> PluginSet {
        let mut plugins: Vec<Arc<Plugin>> = plugins.into_iter().collect();
        plugins.sort_by(|one, other| one.format.cmp(&other.format));
        PluginSet { plugins, pinned, ready: Vec::new() }
    }

    /// The same, with these held loaded.
    #[must_use]
    pub fn with_ready(self, ready: Vec<Arc<Plugin>>) -> PluginSet {
        PluginSet { ready, ..self }
    }

    /// The one that each format runs, sorted by format.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// The one that the format runs.
    pub fn plugin(&self, format: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| *plugin.format == *format)
    }

    /// The one that serves a repository of this format: its pin, or what the format runs.
    pub fn serving(&self, repository: RepositoryId, format: &str) -> Option<&Arc<Plugin>> {
        let pinned = if self.pinned.is_empty() { None } else { self.pinned.get(&repository) };
        pinned.filter(|plugin| *plugin.format == *format).or_else(|| self.plugin(format))
    }

    /// Every claim on a root path with its plugin.
    pub fn claims(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Claim)> {
        self.plugins
            .iter()
            .flat_map(|plugin| plugin.description.claims.iter().map(move |claim| (plugin, claim)))
    }

    /// All that are in it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.plugins.iter().chain(self.pinned.values()).chain(&self.ready)
    }
}
