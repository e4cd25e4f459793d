//! Applying changes of the active components. Every server looks for changes in the database twice
//! a second. The server that made a change applies it at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use packhouse_runtime::{CallError, Plugin, PluginSet};
use packhouse_store::{FormatPlugin, PluginState, StoreError};
use tokio_util::sync::CancellationToken;

use super::start::{AllUncompiled, Uncompiled};
use crate::App;
use crate::boxed;
use crate::jobs::{Job, Next};

/// Interval between checks for changes.
const LOOK: Duration = Duration::from_millis(500);

/// State from the database that this server has applied.
#[derive(Default)]
pub struct Followed {
    /// Number of the last applied change. Applying changes holds the lock.
    number: tokio::sync::Mutex<Option<i64>>,
    /// Reasons why components cannot run on this server, by digest.
    failed: Mutex<BTreeMap<String, String>>,
    /// Components that must still be compiled since the start.
    uncompiled: Mutex<AllUncompiled>,
    /// Cancelled when `uncompiled` becomes empty.
    whole: CancellationToken,
}

impl Followed {
    /// Returns the reasons why components cannot run on this server, by digest.
    pub fn failed(&self) -> BTreeMap<String, String> {
        self.failed_now().clone()
    }

    /// Waits until all components from the start are compiled.
    #[boxed]
    pub async fn whole(&self) {
        self.whole.cancelled().await;
    }

    /// Returns the components that must still be compiled since the start.
    pub(super) fn uncompiled(&self) -> AllUncompiled {
        self.uncompiled_now().clone()
    }

    /// Sets the components that must be compiled at the start.
    pub(super) fn await_components(&self, all: AllUncompiled) {
        if all.is_empty() {
            self.whole.cancel();
        }
        *self.uncompiled_now() = all;
    }

    /// Removes a compiled component. Returns true if it was the last one.
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
    /// Serves with the active components in the database, if these changed since the last check. If
    /// a component cannot run on this server, its format keeps the previous component. The reason
    /// is logged, and [`Followed::failed`] returns it.
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
        // Compile the likely next components now, so that all servers can switch at the same
        // moment. This may take a while, during which the active components serve.
        let ready = self.load_standby(&state).await?;
        self.runtime.serve(set.with_ready(ready));
        self.runtime.drop_unserved();
        *followed = Some(state.number);
        Ok(())
    }

    /// Applies the state in the database even if it has not changed.
    pub(super) async fn reapply_plugins(&self) -> Result<(), StoreError> {
        *self.plugins.number.lock().await = None;
        self.follow_plugins().await
    }

    /// Serves with those components of this state that are already compiled.
    pub(super) async fn serve_plugins(&self, state: &PluginState) -> Result<(), StoreError> {
        // Read this before the set is built. A component that is compiled in between is then in
        // both, and never in neither.
        let awaited = self.awaited(state);
        let set = self.plugin_set(state).await?.with_awaited(awaited);
        let formats = set.plugins().iter().map(|plugin| plugin.description().format.clone());
        self.meters.packages.serves(formats);
        announce(&set);
        self.runtime.serve(set);
        Ok(())
    }

    async fn plugin_set(&self, state: &PluginState) -> Result<PluginSet, StoreError> {
        let before = self.runtime.current();
        let of_folder = self.runtime.folder().into_iter();
        let mut active: BTreeMap<String, Arc<Plugin>> =
            of_folder.map(|plugin| (plugin.description().format.clone(), plugin)).collect();
        for FormatPlugin { format, active: activated, .. } in &state.formats {
            let Some(digest) = activated else { continue };
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

    /// Returns the component with this digest, and loads it if necessary. Returns `None` if the
    /// component is not allowed to run, cannot run on this server, or must still be compiled.
    pub(super) async fn component(
        &self,
        state: &PluginState,
        digest: &str,
    ) -> Result<Option<Arc<Plugin>>, StoreError> {
        if let Err(reason) = self.plugin_may_run(state, digest).await? {
            tracing::error!(digest, "component refused: {reason}");
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
            None => Err("its bytes are not stored".to_owned()),
            Some(bytes) => self.runtime.load_component(digest, bytes).await.map_err(|error| error.reason()),
        };
        match loaded {
            Ok(plugin) => Ok(Some(plugin)),
            Err(reason) => {
                tracing::error!(digest, "cannot run a component, so the previous one stays active: {reason}");
                self.plugins.failed_now().insert(digest.to_owned(), reason);
                Ok(None)
            }
        }
    }

    /// Returns the components that are likely to become active next: the previous and the newest
    /// component of each format.
    async fn load_standby(&self, state: &PluginState) -> Result<Vec<Arc<Plugin>>, StoreError> {
        // The oldest component comes first, so the map keeps the newest component of each format.
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

/// Creates the failure counters of these plugins with the value 0, so that the first failure is an
/// increase.
fn announce(set: &PluginSet) {
    for plugin in set.plugins() {
        for kind in CallError::KINDS {
            let plugin = plugin.description().format.clone();
            metrics::counter!("packhouse_plugin_failures_total", "plugin" => plugin, "kind" => kind)
                .increment(0);
        }
    }
}

impl App {
    /// Checks whether an operator imported advisories. If so, drops the cached pieces of lists,
    /// because versions in them may now be withheld.
    #[boxed]
    pub async fn follow_advisories(&self) -> Result<(), StoreError> {
        if self.advisories.follow().await? {
            self.runtime.forget_pieces();
        }
        Ok(())
    }
}

/// Creates the job that applies changes of the active components and imports of advisories.
pub fn follow_changes(app: &Arc<App>) -> Job {
    Job::new(app, "follow-plugins", LOOK, |app| async move {
        app.follow_plugins().await?;
        app.follow_advisories().await?;
        Ok(Next::AfterPeriod)
    })
}
