//! `packhouse plugins replay FILE`: a recorded call once more, without a server.

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
    /// The recording, as the management API answers it.
    file: PathBuf,
    /// The component that it is run on [default: the one that was recorded, from the plugin folder or the database]
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// The recording was not replayed at all, so that nothing is said of the component: the program ends with 2.
#[derive(Debug)]
pub(crate) struct NotReplayed;

impl std::fmt::Display for NotReplayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the recording was not replayed")
    }
}

/// Prints what the replay did. An error where that is not what was recorded.
pub(super) async fn run(arguments: ReplayArguments) -> anyhow::Result<()> {
    let file = arguments.file.display().to_string();
    let replayed = replayed(arguments).await.context(NotReplayed)?;
    print(&replayed.to_string())?;
    if replayed.difference.is_some() {
        bail!("{} does not do what {file} holds", replayed.component);
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
    #[allow(clippy::disallowed_methods, reason = "it is needed as a whole, and nothing is served")]
    let bytes = std::fs::read(file);
    Ok(bytes.with_context(|| format!("failed to read {}", file.display()))?.into())
}

pub(in crate::cli) fn component(file: &Path) -> anyhow::Result<Bytes> {
    let bytes = read_component(file);
    Ok(bytes.with_context(|| format!("failed to read {}", file.display()))?.into())
}

/// The component that was recorded, by its digest: from these files of a folder, else from the database, where there is one and it holds
/// one.
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
        "neither {} nor the database holds the component {digest}, which was recorded; name another with --component",
        folder.display()
    )
}
