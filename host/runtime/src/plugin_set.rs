//! Which component serves what, at one moment. It is exchanged as a whole; a request keeps the plugin that it found to its end,
//! whatever is activated meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use packhouse_store::RepositoryId;

use crate::description::{Claim, Description};
use crate::plugin::Plugin;
use crate::trial::{Trial, TrialMode};

/// See the module.
#[derive(Clone, Default)]
pub struct PluginSet {
    /// The one that each format runs, sorted by format.
    plugins: Vec<Arc<Plugin>>,
    /// By repository the one that it is pinned to, which is of its format.
    pinned: HashMap<RepositoryId, Arc<Plugin>>,
    /// Those that are tried, one of a format at most.
    trials: Vec<Arc<Trial>>,
    /// Those that are loaded and serve nothing yet.
    ready: Vec<Arc<Plugin>>,
    awaited: AwaitedComponents,
}

/// A component that has to be compiled before it serves, as at the start.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The file's name without its ending, by custom its format, or else a digest.
    pub name: String,
    /// Its format; none where only compiling it tells.
    pub format: Option<String>,
    /// What the component before it said of itself, where that is known: its own words are most likely the same.
    pub description: Option<Arc<Description>>,
    /// Since when it is awaited, in ms since 1970.
    pub since: i64,
}

/// Components that have to be compiled before they serve, and what waits for them.
#[derive(Clone, Debug, Default)]
pub struct AwaitedComponents {
    /// The components.
    pub components: Vec<Awaited>,
    /// Repositories that are pinned to one of them.
    pub pinned: HashSet<RepositoryId>,
}

/// What serves a client.
pub struct Serving {
    /// The component.
    pub plugin: Arc<Plugin>,
    /// The trial that the repository is part of, and whether the component is the candidate.
    pub trial: Option<(Arc<Trial>, bool)>,
}

impl PluginSet {
    /// Of these, one of each format.
    pub fn new(
        plugins: impl IntoIterator<Item = Arc<Plugin>>,
        pinned: HashMap<RepositoryId, Arc<Plugin>>,
    ) -> PluginSet {
        let mut plugins: Vec<Arc<Plugin>> = plugins.into_iter().collect();
        plugins.sort_by(|one, other| one.format.cmp(&other.format));
        PluginSet { plugins, pinned, ..PluginSet::default() }
    }

    /// The same, with these held loaded.
    #[must_use]
    pub fn with_ready(self, ready: Vec<Arc<Plugin>>) -> PluginSet {
        PluginSet { ready, ..self }
    }

    /// The same, with these tried.
    #[must_use]
    pub fn with_trials(self, trials: Vec<Arc<Trial>>) -> PluginSet {
        PluginSet { trials, ..self }
    }

    /// The same, with these still to come.
    #[must_use]
    pub fn with_awaited(self, awaited: AwaitedComponents) -> PluginSet {
        PluginSet { awaited, ..self }
    }

    /// Components that have to be compiled before they serve; none once the start is over.
    pub fn awaited(&self) -> &[Awaited] {
        &self.awaited.components
    }

    /// Whether a component of this format may still come: one is awaited of which that is known, or of which nothing is.
    pub fn awaits(&self, format: &str) -> bool {
        self.awaited().iter().any(|awaited| awaited.format.as_deref().is_none_or(|own| own == format))
    }

    /// What a component that may be of this format, and is awaited, most likely says of itself; none where that is not known.
    pub fn awaited_description(&self, format: &str) -> Option<&Arc<Description>> {
        let mut known = self.awaited().iter().filter_map(|awaited| awaited.description.as_ref());
        known.find(|description| description.format == format)
    }

    /// Every claim on a root path that components have which are awaited, as far as that is known, with what they say of themselves.
    pub fn awaited_claims(&self) -> impl Iterator<Item = (&Arc<Description>, &Claim)> {
        let known = self.awaited().iter().filter_map(|awaited| awaited.description.as_ref());
        known.flat_map(|description| description.claims.iter().map(move |claim| (description, claim)))
    }

    /// What is tried.
    pub fn trials(&self) -> &[Arc<Trial>] {
        &self.trials
    }

    /// The one that each format runs, sorted by format.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// The one that the format runs.
    pub fn plugin(&self, format: &str) -> Option<&Arc<Plugin>> {
        self.plugins.iter().find(|plugin| *plugin.format == *format)
    }

    /// The one that serves a repository of this format: its pin, or what the format runs. None while its pin is awaited.
    pub fn serving(&self, repository: RepositoryId, format: &str) -> Option<&Arc<Plugin>> {
        if !self.awaited.pinned.is_empty() && self.awaited.pinned.contains(&repository) {
            return None;
        }
        let pinned = if self.pinned.is_empty() { None } else { self.pinned.get(&repository) };
        pinned.filter(|plugin| *plugin.format == *format).or_else(|| self.plugin(format))
    }

    /// What serves a client of a repository of this format: its pin, else a canary that takes the client, else what the format runs. `client`
    /// names who asks, and is asked only where that matters.
    pub fn serving_client(
        &self,
        repository: RepositoryId,
        format: &str,
        client: impl FnOnce() -> String,
    ) -> Option<Serving> {
        let plugin = Arc::clone(self.serving(repository, format)?);
        let is_tried = |trial: &&Arc<Trial>| *trial.candidate.format == *format && trial.covers(repository);
        let trial = self.trials.iter().find(is_tried).filter(|_| !self.pinned.contains_key(&repository));
        let Some(trial) = trial.cloned() else { return Some(Serving { plugin, trial: None }) };
        let is_taken = trial.takes(client);
        if trial.mode == TrialMode::Shadow && !is_taken {
            return Some(Serving { plugin, trial: None });
        }
        if trial.mode == TrialMode::Canary && is_taken {
            return Some(Serving { plugin: Arc::clone(&trial.candidate), trial: Some((trial, true)) });
        }
        Some(Serving { plugin, trial: Some((trial, false)) })
    }

    /// Every claim on a root path with its plugin.
    pub fn claims(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Claim)> {
        self.plugins
            .iter()
            .flat_map(|plugin| plugin.description.claims.iter().map(move |claim| (plugin, claim)))
    }

    /// All that are in it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        let tried = self.trials.iter().map(|trial| &trial.candidate);
        self.plugins.iter().chain(self.pinned.values()).chain(tried).chain(&self.ready)
    }
}
