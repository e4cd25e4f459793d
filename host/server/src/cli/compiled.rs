//! Plugin inspection for commands. It uses the server's compiled code, because compiling takes
//! seconds.

use std::path::PathBuf;

use anyhow::Context as _;
use packhouse_config::Config;
use packhouse_runtime::{Inspection, LoadError, inspect_bytes, inspect_with};
use packhouse_store::Store;

/// Inspects a plugin file with [`inspect_with`]. The outer error means that the inspection
/// panicked.
pub(super) async fn inspected(
    config: &Config,
    file: PathBuf,
) -> anyhow::Result<Result<Inspection, LoadError>> {
    let runtime = config.runtime.clone();
    let inspecting = tokio::task::spawn_blocking(move || inspect_with(&file, &runtime));
    inspecting.await.context("inspecting a plugin failed")
}

/// Inspects the component with this digest from the database.
pub(super) async fn inspected_stored(
    config: &Config,
    store: &Store,
    digest: &str,
) -> anyhow::Result<Inspection> {
    let bytes = store.component_bytes(digest).await?;
    let bytes = bytes.with_context(|| format!("the database does not contain the component {digest}"))?;
    let (name, runtime) = (PathBuf::from(digest), config.runtime.clone());
    let inspecting = tokio::task::spawn_blocking(move || inspect_bytes(&name, bytes, &runtime));
    Ok(inspecting.await.context("inspecting a plugin failed")??)
}
