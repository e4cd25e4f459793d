//! `packhouse plugins list` and `packhouse plugins check FILE`.

mod record;
mod replay;

pub(crate) use replay::NotReplayed;

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use packhouse_runtime::{Inspection, inspect};

use crate::cli::{SettingFlags, print, program};
use packhouse_config::Config;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// List the plugins that the server would load.
    List {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Say whether a file is a plugin that this server can run, and what it is.
    Check {
        /// The .wasm file.
        file: PathBuf,
    },
    /// Record calls of a repository's plugin, to be replayed.
    Record(record::RecordArguments),
    /// List what was recorded of a repository, or print a recording.
    Recordings(record::RecordingsArguments),
    /// Run a recorded call again and say where it differs: 0 when it does what was recorded, 1 when not, 2 when it cannot be run.
    Replay(Box<replay::ReplayArguments>),
}

pub(crate) async fn run(command: PluginsCommand) -> anyhow::Result<()> {
    match command {
        PluginsCommand::List { settings } => list(*settings).await,
        PluginsCommand::Check { file } => {
            let found = tokio::task::spawn_blocking(move || inspect(&file)).await??;
            print(&describe(&found))
        }
        PluginsCommand::Record(arguments) => record::record(arguments).await,
        PluginsCommand::Recordings(arguments) => record::recordings(arguments).await,
        PluginsCommand::Replay(arguments) => replay::run(*arguments).await,
    }
}

/// Inspects the files of the folder, and nothing of the store: the server may be running.
async fn list(flags: SettingFlags) -> anyhow::Result<()> {
    let (config, _) = Config::load(&flags.inputs(), &program()?)?;
    let folder = config.runtime.plugins;
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("failed to read the plugin folder {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    files.sort();
    for file in files {
        let found = tokio::task::spawn_blocking(move || inspect(&file)).await??;
        print(&line(&found))?;
    }
    Ok(())
}

fn line(found: &Inspection) -> String {
    let description = &found.description;
    let kinds = description.kinds.join(", ");
    format!("{}\t{}\t{kinds}\t{}", description.format, description.version, found.file.display())
}

fn describe(found: &Inspection) -> String {
    let list = |items: &[String]| if items.is_empty() { "nothing".to_owned() } else { items.join(", ") };
    format!(
        "{} is a plugin for this server\nformat   {}\nversion  {}\nkinds    {}\nimports  {}\noffers   {}",
        found.file.display(),
        found.description.format,
        found.description.version,
        found.description.kinds.join(", "),
        list(&found.imports),
        list(&found.abilities),
    )
}
