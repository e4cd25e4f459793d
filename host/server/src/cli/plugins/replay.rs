//! `packhouse plugins replay FILE`: runs a recorded call again, without a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use packhouse_config::Config;
use packhouse_runtime::{Recording, Replayed, read_component, replay_bytes};
use packhouse_store::{Sha256, Store, StoreError};

use super::{files_of, has_database};
use crate::cli::{SettingFlags, print, program};

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Recording file, as the management API returns it
    file: PathBuf,
    /// Component to run the call on [default: the recorded one, from the plugin folder or the
    /// database]
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Error for a recording that could not be replayed, so that there is no result for the component.
/// The exit code is 2.
#[derive(Debug)]
pub(crate) struct NotReplayed;

impl std::fmt::Display for NotReplayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the recording was not replayed")
    }
}

/// Prints the result of the replay. Fails if it differs from the recording.
pub(super) async fn run(arguments: ReplayArguments) -> anyhow::Result<()> {
    let file = arguments.file.display().to_string();
    let replayed = replayed(arguments).await.context(NotReplayed)?;
    print(&replayed.to_string())?;
    if replayed.difference.is_some() {
        bail!("{} behaves differently than recorded in {file}", replayed.component);
    }
    Ok(())
}

async fn replayed(arguments: ReplayArguments) -> anyhow::Result<Replayed> {
    let ReplayArguments { file, component, settings } = arguments;
    let recording = read(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let (name, component) = match component {
        Some(component) => {
            let bytes = self::component(&component)?;
            (component, bytes)
        }
        None => {
            let (config, _) = Config::load(&settings.inputs(), &program()?)?;
            let (folder, digest) = (config.runtime.plugins.clone(), recording.component.as_str());
            let held = async |store: &Store| store.component_bytes(digest).await;
            let bytes = recorded_component(config, &folder, files_of(&folder)?, digest, held).await?;
            (PathBuf::from(digest), bytes)
        }
    };
    Ok(tokio::task::spawn_blocking(move || replay_bytes(&recording, &name, component)).await??)
}

fn read(file: &Path) -> anyhow::Result<Recording> {
    Recording::parse(&whole(file)?).map_err(anyhow::Error::msg)
}

pub(in crate::cli) fn whole(file: &Path) -> anyhow::Result<Bytes> {
    #[allow(clippy::disallowed_methods, reason = "the whole file is needed, and no server runs here")]
    let bytes = std::fs::read(file);
    Ok(bytes.with_context(|| format!("failed to read {}", file.display()))?.into())
}

pub(in crate::cli) fn component(file: &Path) -> anyhow::Result<Bytes> {
    let bytes = read_component(file);
    Ok(bytes.with_context(|| format!("failed to read {}", file.display()))?.into())
}

/// Finds the recorded component by its digest: in these files of the folder, else in the database
/// if there is one.
pub(in crate::cli) async fn recorded_component(
    config: Config,
    folder: &Path,
    files: Vec<PathBuf>,
    digest: &str,
    held: impl AsyncFnOnce(&Store) -> Result<Option<Bytes>, StoreError>,
) -> anyhow::Result<Bytes> {
    for path in files {
        let bytes = component(&path)?;
        if Sha256::of(&bytes).digest().to_string() == digest {
            return Ok(bytes);
        }
    }
    if has_database(&config).await {
        let store = Store::open(config.store).await.context("failed to open the store")?;
        let found = held(&store).await;
        store.close().await;
        if let Some(bytes) = found? {
            return Ok(bytes);
        }
    }
    bail!(
        "neither {} nor the database contains the recorded component {digest}; name another one with --component",
        folder.display()
    )
}
