//! What a server has compiled of plugins, for commands beside it: to compile one takes seconds.

use std::path::PathBuf;

use anyhow::Context as _;
use packhouse_config::Config;
use packhouse_runtime::{Inspection, LoadError, inspect_bytes, inspect_with};
use packhouse_store::Store;

/// What a plugin's file is, as [`inspect_with`] says it. An error of its own where that ended in a panic.
pub(super) async fn inspected(
    config: &Config,
    file: PathBuf,
) -> anyhow::Result<Result<Inspection, LoadError>> {
    let runtime = config.runtime.clone();
    let inspecting = tokio::task::spawn_blocking(move || inspect_with(&file, &runtime));
    inspecting.await.context("looking at a plugin failed")
}

/// The same of the component of this digest that the database keeps.
pub(super) async fn inspected_stored(
    config: &Config,
    store: &Store,
    digest: &str,
) -> anyhow::Result<Inspection> {
    let bytes = store.component_bytes(digest).await?;
    let bytes = bytes.with_context(|| format!("the database does not keep the component {digest}"))?;
    let (name, runtime) = (PathBuf::from(digest), config.runtime.clone());
    let inspecting = tokio::task::spawn_blocking(move || inspect_bytes(&name, bytes, &runtime));
    Ok(inspecting.await.context("looking at a plugin failed")??)
}
