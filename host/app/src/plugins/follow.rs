//! Following what the database says that formats run. Every server looks twice a second whether something changed; who changed it
//! looks at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use packhouse_runtime::{Plugin, PluginSet};
use packhouse_store::{FormatPlugin, PluginState, StoreError};

use crate::App;

/// How often it is looked whether something changed.
const LOOK: Duration = Duration::from_millis(500);

/// What this server has followed.
#[derive(Default)]
pub struct Followed {
    /// The number of changes that it has followed; locked while it follows.
    number: tokio::sync::Mutex<Option<i64>>,
    /// Why components do not run here that should, by digest.
    failed: Mutex<BTreeMap<String, String>>,
    /// Rung when a canary has failed too often.
    failing: tokio::sync::Notify,
}

impl Followed {
    /// Why components do not run here that should: each with its digest.
    pub fn failed(&self) -> BTreeMap<String, String> {
        self.failed_now().clone()
    }

    /// Who adds up what is counted of trials waits for this; whoever counts one failure too many rings it.
    pub fn failing(&self) -> &tokio::sync::Notify {
        &self.failing
    }

    fn failed_now(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Serves with what the database says that formats run, if that has changed since this server looked. A component that cannot be
    /// run here leaves its format with what it ran before; that is logged, and told by [`Followed::failed`].
    pub async fn follow_plugins(&self) -> Result<(), StoreError> {
        let mut followed = self.plugins.number.lock().await;
        let number = self.store.plugin_changes().await?;
        if *followed == Some(number) {
            return Ok(());
        }
        let state = self.store.plugin_state().await?;
        self.plugins.failed_now().clear();
        let set = self.plugin_set(&state).await?.with_trials(self.trials_of(&state).await?);
        let formats = set.plugins().iter().map(|plugin| plugin.description().format.clone());
        self.meters.packages.serves(formats);
        let before = self.runtime.current();
        self.runtime.serve(set.clone());
        self.add_up_ended(&before, &set).await;
        // What is likely to run next is compiled by now, so that all servers change over at once. It may take a while, and what was
        // activated serves meanwhile.
        let ready = self.made_ready(&state).await?;
        self.runtime.serve(set.with_ready(ready));
        self.runtime.let_go();
        *followed = Some(state.number);
        Ok(())
    }

    async fn plugin_set(&self, state: &PluginState) -> Result<PluginSet, StoreError> {
        let before = self.runtime.current();
        let of_folder = self.runtime.folder().map(|plugin| (plugin.description().format.clone(), plugin));
        let mut active: BTreeMap<String, Arc<Plugin>> =
            of_folder.map(|(format, plugin)| (format, Arc::clone(plugin))).collect();
        for FormatPlugin { format, active: wanted, .. } in &state.formats {
            let Some(digest) = wanted else { continue };
            let loaded = self.component(digest).await?;
            let loaded = loaded.filter(|plugin| plugin.description().format == *format);
            if let Some(plugin) = loaded.or_else(|| before.plugin(format).cloned()) {
                active.insert(format.clone(), plugin);
            }
        }
        let mut pinned = HashMap::new();
        for (repository, digest) in &state.pins {
            if let Some(plugin) = self.component(digest).await? {
                pinned.insert(*repository, plugin);
            }
        }
        Ok(PluginSet::new(active.into_values(), pinned))
    }

    /// The component of this digest, loaded if it was not; none where it cannot run here.
    pub(super) async fn component(&self, digest: &str) -> Result<Option<Arc<Plugin>>, StoreError> {
        if let Some(plugin) = self.runtime.loaded(digest) {
            return Ok(Some(plugin));
        }
        if self.plugins.failed_now().contains_key(digest) {
            return Ok(None);
        }
        let loaded = match self.store.component_bytes(digest).await? {
            None => Err("its bytes are not kept".to_owned()),
            Some(bytes) => self.runtime.load_component(digest, bytes).await.map_err(|error| error.reason()),
        };
        match loaded {
            Ok(plugin) => Ok(Some(plugin)),
            Err(reason) => {
                tracing::error!(digest, "a component cannot be run here, so what ran before stays: {reason}");
                self.plugins.failed_now().insert(digest.to_owned(), reason);
                Ok(None)
            }
        }
    }

    /// What may run next: of each format the one before, and the one that was installed last.
    async fn made_ready(&self, state: &PluginState) -> Result<Vec<Arc<Plugin>>, StoreError> {
        // Oldest first: the last of a format stays.
        let all = self.store.components().await?.into_iter();
        let newest: BTreeMap<String, String> = all.map(|row| (row.format, row.digest)).collect();
        let before = state.formats.iter().filter_map(|row| row.history.last());
        let mut ready = Vec::new();
        for digest in newest.values().chain(before) {
            ready.extend(self.component(digest).await?);
        }
        Ok(ready)
    }
}

impl App {
    /// Sees whether advisories were brought in; then pieces of lists are made anew, in which there may be what is withheld from now on.
    pub async fn follow_advisories(&self) -> Result<(), StoreError> {
        if self.advisories.follow().await? {
            self.runtime.forget_pieces();
        }
        Ok(())
    }
}

/// Follows until the stop, and sees whether advisories were brought in.
pub async fn follow_changes(app: Arc<App>) {
    let mut told = false;
    loop {
        let followed = match app.follow_plugins().await {
            Ok(()) => app.follow_advisories().await,
            failed => failed,
        };
        match followed {
            Ok(()) => told = false,
            // The database's being away is told by whoever watches it.
            Err(error) if told => {
                tracing::debug!(%error, "it is not known what formats run, nor which advisories there are")
            }
            Err(error) => {
                told = true;
                tracing::warn!(%error, "it is not known what formats run; what ran goes on");
            }
        }
        tokio::select! {
            () = app.stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
