//! Start of the plugins. Components whose compiled form is cached serve at once. Each other
//! component serves as soon as it is compiled.
//!
//! While a component is being compiled, requests to its format get 503, not 404. Requests that
//! might belong to its format get 503 too.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use packhouse_runtime::{Awaited, AwaitedComponents, component_name, parallel_compilations};
use packhouse_store::{PluginState, StoreError, now_ms};

use crate::App;
use crate::boxed;

/// A component that must be compiled: a file in the plugin folder, or a component in the database.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Uncompiled {
    File(PathBuf),
    Stored(String),
}

/// Components that must still be compiled.
pub(super) type AllUncompiled = BTreeMap<Uncompiled, Awaited>;

impl App {
    /// Serves with the components whose compiled form is cached. [`compile_rest`] compiles the
    /// others.
    #[boxed]
    pub async fn begin_plugins(&self) -> Result<(), StoreError> {
        let mut rest = AllUncompiled::new();
        let since = now_ms();
        for file in self.runtime.uncompiled() {
            let name = component_name(file).unwrap_or_default();
            let description = self.runtime.last_description(&name);
            let awaited = Awaited { name, format: None, description, since };
            rest.insert(Uncompiled::File(file.clone()), awaited);
        }
        let state = self.store.plugin_state().await?;
        for (digest, format) in required_components(&state) {
            if !self.is_compiled(&digest).await? {
                let description = format.as_ref().and_then(|format| self.runtime.last_description(format));
                let awaited = Awaited { name: digest.clone(), format, description, since };
                rest.insert(Uncompiled::Stored(digest), awaited);
            }
        }
        self.plugins.await_components(rest);
        self.serve_plugins(&state).await
    }

    /// Returns whether a stored component was compiled before, and loads it if so. If the component
    /// cannot run, the reason is reported later, when the component should serve.
    async fn is_compiled(&self, digest: &str) -> Result<bool, StoreError> {
        if self.runtime.loaded(digest).is_some() {
            return Ok(true);
        }
        let Some(bytes) = self.store.component_bytes(digest).await? else { return Ok(true) };
        Ok(!matches!(self.runtime.load_cached(digest, bytes).await, Ok(None)))
    }

    /// Returns the components that must still be compiled, and the repositories to which this state
    /// pins one of them.
    pub(super) fn awaited(&self, state: &PluginState) -> AwaitedComponents {
        let rest = self.plugins.uncompiled();
        let is_awaited = |digest: &str| rest.contains_key(&Uncompiled::Stored(digest.to_owned()));
        let pinned = state.pins.iter().filter(|(_, digest)| is_awaited(digest));
        let pinned: HashSet<_> = pinned.map(|(repository, _)| *repository).collect();
        AwaitedComponents { components: rest.into_values().collect(), pinned }
    }

    /// Compiles one component, and serves with it.
    async fn compile_one(&self, uncompiled: Uncompiled) {
        match &uncompiled {
            Uncompiled::File(file) => self.runtime.compile_file(file).await,
            // The compiled form is cached now. The server loads it when the component should serve.
            Uncompiled::Stored(digest) => match self.store.component_bytes(digest).await {
                Ok(Some(bytes)) => drop(self.runtime.load_component(digest, bytes).await),
                Ok(None) => {}
                Err(error) => tracing::warn!(digest, %error, "could not read a component; will retry"),
            },
        }
        if self.plugins.arrived(&uncompiled) {
            self.runtime.finish_compiling();
        }
        // If this fails, the job `follow-plugins` tries again.
        if let Err(error) = self.reapply_plugins().await {
            tracing::warn!(%error, "could not read the active plugins");
        }
    }
}

/// Returns the digests of the stored components that this state needs. Each comes with its format
/// if the database states it.
fn required_components(state: &PluginState) -> BTreeMap<String, Option<String>> {
    let pinned = state.pins.iter().map(|(_, digest)| (digest.clone(), None));
    let active = state.formats.iter().filter_map(|row| Some((row.active.clone()?, Some(row.format.clone()))));
    // An entry with a format replaces an entry without one.
    pinned.chain(active).collect()
}

/// Compiles the components that [`App::begin_plugins`] left, until the server stops. Compiles
/// several at the same time, and the smallest files first.
#[boxed]
pub async fn compile_rest(app: Arc<App>) {
    let mut first: Vec<Uncompiled> = app.runtime.uncompiled().iter().cloned().map(Uncompiled::File).collect();
    let rest = app.plugins.uncompiled();
    first.retain(|file| rest.contains_key(file));
    let stored = rest.into_keys().filter(|one| matches!(one, Uncompiled::Stored(_)));
    // Stored components come first, because an operator chose them.
    let all: Vec<Uncompiled> = stored.chain(first).collect();
    let compiling =
        futures::stream::iter(all).for_each_concurrent(parallel_compilations(), |one| app.compile_one(one));
    tokio::select! {
        () = app.stop.cancelled() => {}
        () = compiling => {}
    }
}
