//! The start: what was compiled before serves at once, and the rest once it is compiled, each component by itself. Until then nobody is
//! told that it is not there: its format is 503, and so is what might be its own.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use packhouse_runtime::{Awaited, AwaitedComponents, component_name, side_by_side};
use packhouse_store::{PluginState, StoreError, now_ms};

use crate::App;
use crate::boxed;

/// What has to be compiled: a file beside the program, or a component of the database.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Uncompiled {
    /// The file.
    File(PathBuf),
    /// By its digest.
    Stored(String),
}

/// What is still to be compiled.
pub(super) type AllUncompiled = BTreeMap<Uncompiled, Awaited>;

impl App {
    /// Serves with what was compiled before. The rest is awaited, until [`compile_rest`] has compiled it.
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
        for (digest, format) in wanted(&state) {
            if !self.is_compiled(&digest).await? {
                let description = format.as_ref().and_then(|format| self.runtime.last_description(format));
                let awaited = Awaited { name: digest.clone(), format, description, since };
                rest.insert(Uncompiled::Stored(digest), awaited);
            }
        }
        self.plugins.await_components(rest);
        self.serve_plugins(&state).await
    }

    /// Whether a component of the database was compiled before, and then it is loaded. Why one cannot be run is found out, and told,
    /// when it is to serve.
    async fn is_compiled(&self, digest: &str) -> Result<bool, StoreError> {
        if self.runtime.loaded(digest).is_some() {
            return Ok(true);
        }
        let Some(bytes) = self.store.component_bytes(digest).await? else { return Ok(true) };
        Ok(!matches!(self.runtime.load_kept(digest, bytes).await, Ok(None)))
    }

    /// Which of the components that this state needs are awaited, with those beside the program.
    pub(super) fn awaited(&self, state: &PluginState) -> AwaitedComponents {
        let rest = self.plugins.uncompiled();
        let is_awaited = |digest: &str| rest.contains_key(&Uncompiled::Stored(digest.to_owned()));
        let pinned = state.pins.iter().filter(|(_, digest)| is_awaited(digest));
        let pinned: HashSet<_> = pinned.map(|(repository, _)| *repository).collect();
        AwaitedComponents { components: rest.into_values().collect(), pinned }
    }

    /// Compiles one, and serves with it.
    async fn compile_one(&self, uncompiled: Uncompiled) {
        match &uncompiled {
            Uncompiled::File(file) => self.runtime.compile_file(file).await,
            // It is kept then, and loaded where it is to serve.
            Uncompiled::Stored(digest) => match self.store.component_bytes(digest).await {
                Ok(Some(bytes)) => drop(self.runtime.load_component(digest, bytes).await),
                Ok(None) => {}
                Err(error) => tracing::warn!(digest, %error, "a component cannot be read; it is tried again"),
            },
        }
        if self.plugins.arrived(&uncompiled) {
            self.runtime.compiled_all();
        }
        // Where this fails, who follows tries it again.
        if let Err(error) = self.follow_anew().await {
            tracing::warn!(%error, "it is not known what formats run");
        }
    }
}

/// Digests of the database's components that are to serve, each with its format where the database says it.
fn wanted(state: &PluginState) -> BTreeMap<String, Option<String>> {
    let pinned = state.pins.iter().map(|(_, digest)| (digest.clone(), None));
    let tried = state.trials.iter().filter(|row| row.ended_at.is_none());
    let tried = tried.map(|row| (row.new.digest.clone(), Some(row.new.format.clone())));
    let active = state.formats.iter().filter_map(|row| Some((row.active.clone()?, Some(row.format.clone()))));
    // What is known of a digest takes the place of what is not.
    pinned.chain(tried).chain(active).collect()
}

/// Compiles what [`App::begin_plugins`] left, several at one time and the smallest first, until the stop.
#[boxed]
pub async fn compile_rest(app: Arc<App>) {
    let mut first: Vec<Uncompiled> = app.runtime.uncompiled().iter().cloned().map(Uncompiled::File).collect();
    let rest = app.plugins.uncompiled();
    first.retain(|file| rest.contains_key(file));
    let stored = rest.into_keys().filter(|one| matches!(one, Uncompiled::Stored(_)));
    // Those of the database first: they are what somebody chose.
    let all: Vec<Uncompiled> = stored.chain(first).collect();
    let compiling =
        futures::stream::iter(all).for_each_concurrent(side_by_side(), |one| app.compile_one(one));
    tokio::select! {
        () = app.stop.cancelled() => {}
        () = compiling => {}
    }
}
