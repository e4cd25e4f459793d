//! `packhouse policies replay FILE`: a recorded call of a policy once more, without a server.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use packhouse_config::Config;
use packhouse_runtime::{PolicyRecording, PolicyReplayed, component_files, replay_policy};
use packhouse_store::Store;

use crate::cli::plugins::{NotReplayed, component, recorded_component, whole};
use crate::cli::{SettingFlags, print, program};

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The recording, as the management API answers it.
    file: PathBuf,
    /// The component that it is run on [default: the one that was recorded, from beside the plugins or the database]
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Prints what the replay did. An error where that is not what was recorded.
pub(super) async fn run(arguments: ReplayArguments) -> anyhow::Result<()> {
    let file = arguments.file.display().to_string();
    let replayed = replayed(arguments).await.context(NotReplayed)?;
    print(&replayed.to_string())?;
    if replayed.difference.is_some() {
        bail!("{} does not judge as {file} holds", replayed.component);
    }
    Ok(())
}

async fn replayed(arguments: ReplayArguments) -> anyhow::Result<PolicyReplayed> {
    let ReplayArguments { file, component: named, settings } = arguments;
    let recording = whole(&file)
        .and_then(|bytes| PolicyRecording::parse(&bytes).map_err(anyhow::Error::msg))
        .with_context(|| format!("failed to read {}", file.display()))?;
    let (name, bytes) = match named {
        Some(named) => {
            let bytes = component(&named)?;
            (named, bytes)
        }
        None => {
            let (config, _) = Config::load(&settings.inputs(), &program()?)?;
            let (folder, digest) = (config.runtime.plugins.join("policies"), recording.component.as_str());
            // Where there is no such folder, there are none.
            let files = component_files(&folder).unwrap_or_default();
            let held = async |store: &Store| store.policy_component_bytes(digest).await;
            (PathBuf::from(digest), recorded_component(config, &folder, files, digest, held).await?)
        }
    };
    Ok(replay_policy(&recording, &name, bytes).await?)
}
