//! Which component serves what, at one moment. It is exchanged as a whole; a request keeps the plugin that it found to its end,
//! whatever is activated meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use packhouse_store::RepositoryId;

use crate::description::Claim;
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

    /// The one that serves a repository of this format: its pin, or what the format runs.
    pub fn serving(&self, repository: RepositoryId, format: &str) -> Option<&Arc<Plugin>> {
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
