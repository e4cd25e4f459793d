//! The plugins of the folder: those that are loaded, and why other files are none. It grows while components are compiled at the start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::LoadError;
use crate::plugin::Plugin;

/// See the module.
#[derive(Default)]
pub(crate) struct Folder(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    /// By format.
    plugins: BTreeMap<Arc<str>, Arc<Plugin>>,
    refused: Vec<Arc<LoadError>>,
}

impl Folder {
    /// Takes a plugin in. Of two of one format the first by the name of its file is the plugin, whichever comes first.
    pub(crate) fn take_in(&self, plugin: Plugin) {
        let plugin = Arc::new(plugin);
        let mut contents = self.contents();
        let Some(other) = contents.plugins.get(&plugin.format).cloned() else {
            contents.plugins.insert(Arc::clone(&plugin.format), plugin);
            return;
        };
        let (first, second) = if plugin.file < other.file { (plugin, other) } else { (other, plugin) };
        let file = |plugin: &Plugin| plugin.file.clone().unwrap_or_default();
        let format = first.format.as_ref().to_owned();
        let twice = LoadError::Twice { format, first: file(&first), second: file(&second) };
        contents.plugins.insert(Arc::clone(&first.format), first);
        contents.refuse(twice);
    }

    /// Notes why a file is no plugin, which the log says too.
    pub(crate) fn refuse(&self, error: LoadError) {
        self.contents().refuse(error);
    }

    /// Those that are loaded, sorted by format.
    pub(crate) fn plugins(&self) -> Vec<Arc<Plugin>> {
        self.contents().plugins.values().cloned().collect()
    }

    /// The one of this format.
    pub(crate) fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.contents().plugins.get(format).cloned()
    }

    /// Why other files are none.
    pub(crate) fn refused(&self) -> Vec<Arc<LoadError>> {
        self.contents().refused.clone()
    }

    /// Takes out why one of them is none.
    pub(crate) fn take_refused(&self) -> Option<LoadError> {
        Arc::into_inner(self.contents().refused.pop()?)
    }

    /// The first name that is configured and that no plugin has, nor a file that is refused, which says more; with the formats that
    /// there are.
    pub(crate) fn unknown_name<'a>(
        &self,
        mut configured: impl Iterator<Item = &'a String>,
    ) -> Option<LoadError> {
        let contents = self.contents();
        let is_known = |name: &str| {
            contents.plugins.contains_key(name)
                || contents.refused.iter().any(|error| error.stem().as_deref() == Some(name))
        };
        let name = configured.find(|name| !is_known(name))?;
        let loaded: Vec<&str> = contents.plugins.keys().map(AsRef::as_ref).collect();
        Some(LoadError::Unknown { name: name.clone(), loaded: loaded.join(", ") })
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn refuse(&mut self, error: LoadError) {
        tracing::error!(%error, "a plugin cannot be loaded; everything else is served");
        self.refused.push(Arc::new(error));
    }
}
