//! The components that serve each format and repository at one moment. The set is replaced as a
//! whole. A request keeps the plugin that it found until it ends, even if another is activated
//! meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use packhouse_store::RepositoryId;

use crate::description::{Claim, Description};
use crate::plugin::Plugin;

/// The serving plugins, the loaded plugins that do not serve, and the components that are still to
/// be compiled.
#[derive(Clone, Default)]
pub struct PluginSet {
    /// Active plugin of each format, sorted by format.
    plugins: Vec<Arc<Plugin>>,
    /// Pinned plugins by repository, each of the repository's format.
    pinned: HashMap<RepositoryId, Arc<Plugin>>,
    /// Loaded plugins that serve nothing yet.
    ready: Vec<Arc<Plugin>>,
    awaited: AwaitedComponents,
}

/// A component that has to be compiled before it serves, as at the start.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// Name of the file without its ending, which is usually the format. The digest for a component
    /// from the store.
    pub name: String,
    /// Its format. None if it is known only after compiling.
    pub format: Option<String>,
    /// Description of the previous version, if known. The new one most likely has the same.
    pub description: Option<Arc<Description>>,
    /// Time since when it is awaited, in ms since 1970.
    pub since: i64,
}

/// Components that have to be compiled before they serve, and the repositories that wait for them.
#[derive(Clone, Debug, Default)]
pub struct AwaitedComponents {
    pub components: Vec<Awaited>,
    /// Repositories that are pinned to an awaited component.
    pub pinned: HashSet<RepositoryId>,
}

impl PluginSet {
    /// Creates a set of these plugins, one for each format.
    pub fn new(
        plugins: impl IntoIterator<Item = Arc<Plugin>>,
        pinned: HashMap<RepositoryId, Arc<Plugin>>,
    ) -> PluginSet {
        let mut plugins: Vec<Arc<Plugin>> = plugins.into_iter().collect();
        plugins.sort_by(|one, other| one.format.cmp(&other.format));
        PluginSet { plugins, pinned, ..PluginSet::default() }
    }

    /// Adds loaded plugins that serve nothing yet.
    #[must_use]
    pub fn with_ready(self, ready: Vec<Arc<Plugin>>) -> PluginSet {
        PluginSet { ready, ..self }
    }

    #[must_use]
    pub fn with_awaited(self, awaited: AwaitedComponents) -> PluginSet {
        PluginSet { awaited, ..self }
    }

    /// Components that have to be compiled before they serve. Empty once the start is over.
    pub fn awaited(&self) -> &[Awaited] {
        &self.awaited.components
    }

    /// Returns true if a component of this format is awaited, or a component whose format is
    /// unknown.
    pub fn awaits(&self, format: &str) -> bool {
        self.awaited().iter().any(|awaited| awaited.format.as_deref().is_none_or(|own| own == format))
    }

    /// Most likely description of an awaited component of this format, if known.
    pub fn awaited_description(&self, format: &str) -> Option<&Arc<Description>> {
        let mut known = self.awaited().iter().filter_map(|awaited| awaited.description.as_ref());
        known.find(|description| description.format == format)
    }

    /// Claims on root paths that awaited components probably have, with their descriptions.
    pub fn awaited_claims(&self) -> impl Iterator<Item = (&Arc<Description>, &Claim)> {
        let known = self.awaited().iter().filter_map(|awaited| awaited.description.as_ref());
        known.flat_map(|description| description.claims.iter().map(move |claim| (description, claim)))
    }

    /// Active plugin of each format, sorted by format.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Active plugin of the format.
    pub fn plugin(&self, format: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| *plugin.format == *format)
    }

    /// Plugin that serves a repository of this format: its pin, or the active plugin of the format.
    /// None while its pin is awaited.
    pub fn serving(&self, repository: RepositoryId, format: &str) -> Option<&Arc<Plugin>> {
        if !self.awaited.pinned.is_empty() && self.awaited.pinned.contains(&repository) {
            return None;
        }
        let pinned = if self.pinned.is_empty() { None } else { self.pinned.get(&repository) };
        pinned.filter(|plugin| *plugin.format == *format).or_else(|| self.plugin(format))
    }

    /// Every claim on a root path with its plugin.
    pub fn claims(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Claim)> {
        self.plugins
            .iter()
            .flat_map(|plugin| plugin.description.claims.iter().map(move |claim| (plugin, claim)))
    }

    /// All plugins of the set.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.plugins.iter().chain(self.pinned.values()).chain(&self.ready)
    }
}
