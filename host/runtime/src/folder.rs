//! Plugins of the folder: the loaded ones, and the files that were refused. The lists grow while
//! the server compiles components at its start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::LoadError;
use crate::plugin::Plugin;

/// Loaded and refused files of the plugin folder.
#[derive(Default)]
pub(crate) struct PluginFolder(Mutex<FolderState>);

#[derive(Default)]
struct FolderState {
    plugins: BTreeMap<Arc<str>, Arc<Plugin>>,
    refused: Vec<Arc<LoadError>>,
}

impl PluginFolder {
    /// Adds a plugin. Of two plugins with one format, the file whose name sorts first wins, in
    /// whichever order they arrive.
    pub(crate) fn add(&self, plugin: Plugin) {
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

    /// Records and logs why a file was refused.
    pub(crate) fn refuse(&self, error: LoadError) {
        self.contents().refuse(error);
    }

    /// Loaded plugins, sorted by format.
    pub(crate) fn plugins(&self) -> Vec<Arc<Plugin>> {
        self.contents().plugins.values().cloned().collect()
    }

    /// Returns the loaded plugin of this format.
    pub(crate) fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.contents().plugins.get(format).cloned()
    }

    /// Reasons why other files were refused.
    pub(crate) fn refused(&self) -> Vec<Arc<LoadError>> {
        self.contents().refused.clone()
    }

    /// Removes and returns the reason for one refused file.
    pub(crate) fn take_refused(&self) -> Option<LoadError> {
        Arc::into_inner(self.contents().refused.pop()?)
    }

    /// Returns an error for the first configured name that belongs neither to a plugin nor to a
    /// refused file. A refused file has its own, more exact error. The error lists the loaded
    /// formats.
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

    fn contents(&self) -> MutexGuard<'_, FolderState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FolderState {
    fn refuse(&mut self, error: LoadError) {
        tracing::error!(%error, "could not load a plugin; the others are served");
        self.refused.push(Arc::new(error));
    }
}
