//! `packhouse policies replay FILE`: runs a recorded policy call again, without a server.

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
    /// Recording file, as the management API returns it
    file: PathBuf,
    /// Component to run the call on [default: the recorded one, from the policies folder or the
    /// database]
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Prints the result of the replay. Fails if it differs from the recording.
pub(super) async fn run(arguments: ReplayArguments) -> anyhow::Result<()> {
    let file = arguments.file.display().to_string();
    let replayed = replayed(arguments).await.context(NotReplayed)?;
    print(&replayed.to_string())?;
    if replayed.difference.is_some() {
        bail!("{} judges differently than recorded in {file}", replayed.component);
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
            // A missing folder contains no components.
            let files = component_files(&folder).unwrap_or_default();
            let held = async |store: &Store| store.policy_component_bytes(digest).await;
            (PathBuf::from(digest), recorded_component(config, &folder, files, digest, held).await?)
        }
    };
    Ok(replay_policy(&recording, &name, bytes).await?)
}
