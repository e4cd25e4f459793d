//! `packhouse plugins replay FILE`: a recorded call once more, without a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use packhouse_config::Config;
use packhouse_runtime::{Recording, Replayed, replay};
use packhouse_store::Sha256;

use crate::cli::{SettingFlags, print, program};

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The recording, as the management API answers it.
    file: PathBuf,
    /// The component that it is run on [default: the one that was recorded, from the plugin folder]
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
    let component = match component {
        Some(component) => component,
        None => recorded_component(&settings, &recording.component)?,
    };
    Ok(tokio::task::spawn_blocking(move || replay(&recording, &component)).await??)
}

fn read(file: &Path) -> anyhow::Result<Recording> {
    #[allow(clippy::disallowed_methods, reason = "a recording is read as a whole, and nothing is served")]
    let bytes = std::fs::read(file)?;
    Recording::parse(&bytes).map_err(anyhow::Error::msg)
}

/// The file of the component that was recorded: the one in the plugin folder that has this digest.
fn recorded_component(settings: &SettingFlags, digest: &str) -> anyhow::Result<PathBuf> {
    let (config, _) = Config::load(&settings.clone().inputs(), &program()?)?;
    let folder = config.runtime.plugins;
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("failed to read the plugin folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            #[allow(
                clippy::disallowed_methods,
                reason = "a component is read as a whole, and nothing is served"
            )]
            let bytes = std::fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            if Sha256::of(&bytes).digest().to_string() == digest {
                return Ok(path);
            }
        }
    }
    bail!(
        "{} holds no component {digest}, which was recorded; name another with --component",
        folder.display()
    )
}
