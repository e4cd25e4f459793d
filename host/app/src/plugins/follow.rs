//! Following what the database says that formats run. Every server looks twice a second whether something changed; who changed it
//! looks at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use packhouse_runtime::{CallError, Plugin, PluginSet, TrialMode};
use packhouse_store::{FormatPlugin, PluginState, StoreError};
use tokio_util::sync::CancellationToken;

use super::start::{AllUncompiled, Uncompiled};
use super::trials;
use crate::App;
use crate::boxed;

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
    /// What the start has still to compile.
    uncompiled: Mutex<AllUncompiled>,
    /// Cancelled once that is nothing.
    whole: CancellationToken,
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

    /// Waits until the start has compiled everything.
    #[boxed]
    pub async fn whole(&self) {
        self.whole.cancelled().await;
    }

    /// What the start has still to compile.
    pub(super) fn uncompiled(&self) -> AllUncompiled {
        self.uncompiled_now().clone()
    }

    /// So much is to be compiled.
    pub(super) fn await_components(&self, all: AllUncompiled) {
        if all.is_empty() {
            self.whole.cancel();
        }
        *self.uncompiled_now() = all;
    }

    /// One is compiled; true where it was the last.
    pub(super) fn arrived(&self, one: &Uncompiled) -> bool {
        let mut all = self.uncompiled_now();
        all.remove(one);
        all.is_empty()
    }

    fn uncompiled_now(&self) -> MutexGuard<'_, AllUncompiled> {
        self.uncompiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed_now(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Serves with what the database says that formats run, if that has changed since this server looked. A component that cannot be
    /// run here leaves its format with what it ran before; that is logged, and told by [`Followed::failed`].
    #[boxed]
    pub async fn follow_plugins(&self) -> Result<(), StoreError> {
        let mut followed = self.plugins.number.lock().await;
        let number = self.store.plugin_changes().await?;
        if *followed == Some(number) {
            return Ok(());
        }
        let state = self.store.plugin_state().await?;
        self.plugins.failed_now().clear();
        self.serve_plugins(&state).await?;
        let set = PluginSet::clone(&self.runtime.current());
        if !set.awaited().is_empty() {
            *followed = Some(state.number);
            return Ok(());
        }
        self.plugins.whole.cancel();
        // What is likely to run next is compiled by now, so that all servers change over at once. It may take a while, and what was
        // activated serves meanwhile.
        let ready = self.made_ready(&state).await?;
        self.runtime.serve(set.with_ready(ready));
        self.runtime.let_go();
        *followed = Some(state.number);
        Ok(())
    }

    /// The same, whether it has changed or not.
    pub(super) async fn follow_anew(&self) -> Result<(), StoreError> {
        *self.plugins.number.lock().await = None;
        self.follow_plugins().await
    }

    /// Serves with what this state says, as far as it is compiled.
    pub(super) async fn serve_plugins(&self, state: &PluginState) -> Result<(), StoreError> {
        // Before it is looked what is there: what arrives in between is in both, and never in neither.
        let awaited = self.awaited(state);
        let set = self.plugin_set(state).await?.with_trials(self.trials_of(state).await?);
        let set = set.with_awaited(awaited);
        let formats = set.plugins().iter().map(|plugin| plugin.description().format.clone());
        self.meters.packages.serves(formats);
        announce(&set);
        let before = self.runtime.current();
        self.runtime.serve(set.clone());
        self.add_up_ended(&before, &set).await;
        Ok(())
    }

    async fn plugin_set(&self, state: &PluginState) -> Result<PluginSet, StoreError> {
        let before = self.runtime.current();
        let of_folder = self.runtime.folder().into_iter();
        let mut active: BTreeMap<String, Arc<Plugin>> =
            of_folder.map(|plugin| (plugin.description().format.clone(), plugin)).collect();
        for FormatPlugin { format, active: wanted, .. } in &state.formats {
            let Some(digest) = wanted else { continue };
            if self.is_awaited(digest) {
                active.remove(format);
                continue;
            }
            let loaded = self.component(state, digest).await?;
            let loaded = loaded.filter(|plugin| plugin.description().format == *format);
            if let Some(plugin) = loaded.or_else(|| before.plugin(format).cloned()) {
                active.insert(format.clone(), plugin);
            }
        }
        // A client that a canary answers shall see no other version, even for a while.
        for row in state.trials.iter().filter(|row| row.ended_at.is_none()) {
            if row.new.mode == TrialMode::Canary.word() && self.is_awaited(&row.new.digest) {
                active.remove(&row.new.format);
            }
        }
        let mut pinned = HashMap::new();
        for (repository, digest) in &state.pins {
            if let Some(plugin) = self.component(state, digest).await? {
                pinned.insert(*repository, plugin);
            }
        }
        Ok(PluginSet::new(active.into_values(), pinned))
    }

    fn is_awaited(&self, digest: &str) -> bool {
        self.plugins.uncompiled_now().contains_key(&Uncompiled::Stored(digest.to_owned()))
    }

    /// The component of this digest, loaded if it was not; none where it may not or cannot run here, or is awaited.
    pub(super) async fn component(
        &self,
        state: &PluginState,
        digest: &str,
    ) -> Result<Option<Arc<Plugin>>, StoreError> {
        if let Err(reason) = self.plugin_may_run(state, digest).await? {
            tracing::error!(digest, "a component may not run here: {reason}");
            self.plugins.failed_now().insert(digest.to_owned(), reason);
            return Ok(None);
        }
        if let Some(plugin) = self.runtime.loaded(digest) {
            return Ok(Some(plugin));
        }
        if self.is_awaited(digest) || self.plugins.failed_now().contains_key(digest) {
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
            ready.extend(self.component(state, digest).await?);
        }
        Ok(ready)
    }
}

/// Makes what is counted of these known at 0, so that the first failure is seen as an increase.
fn announce(set: &PluginSet) {
    for plugin in set.plugins() {
        for kind in CallError::KINDS {
            let plugin = plugin.description().format.clone();
            metrics::counter!("packhouse_plugin_failures_total", "plugin" => plugin, "kind" => kind)
                .increment(0);
        }
    }
    set.trials().iter().for_each(|trial| trials::announce(trial));
}

impl App {
    /// Sees whether advisories were brought in; then pieces of lists are made anew, in which there may be what is withheld from now on.
    #[boxed]
    pub async fn follow_advisories(&self) -> Result<(), StoreError> {
        if self.advisories.follow().await? {
            self.runtime.forget_pieces();
        }
        Ok(())
    }
}

/// Follows until the stop, and sees whether advisories were brought in.
#[boxed]
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
