//! What a server has compiled of plugins, for commands beside it: to compile one takes seconds.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use packhouse_config::Config;
use packhouse_runtime::{Inspection, LoadError, inspect_with};

/// Where the server keeps it, if there is something and it is this user's own: it is code that is run, and whoever is `root` here shall
/// not run what another has written.
fn folder(config: &Config) -> Option<PathBuf> {
    let folder = config.runtime.cache.clone()?;
    let owner = std::fs::metadata(&folder).ok().filter(std::fs::Metadata::is_dir)?.uid();
    (owner == rustix::process::geteuid().as_raw()).then_some(folder)
}

/// What a plugin's file is, as [`inspect_with`] says it. An error of its own where that ended in a panic.
pub(super) async fn inspected(
    config: &Config,
    file: PathBuf,
) -> anyhow::Result<Result<Inspection, LoadError>> {
    let folder = folder(config);
    let inspecting = tokio::task::spawn_blocking(move || inspect_with(&file, folder.as_deref()));
    inspecting.await.context("looking at a plugin failed")
}
