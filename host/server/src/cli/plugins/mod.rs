//! `packhouse plugins`: which there are, whether a file is one, and what formats run.

mod lifecycle;
mod record;
mod replay;

pub(crate) use replay::NotReplayed;

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use packhouse_runtime::{Inspection, inspect};

use crate::cli::{SettingFlags, print, program};
use packhouse_config::Config;
use packhouse_store::{examine_database, known_schema};

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// List the components beside the program and those of the database, with what each is to its format.
    List {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Say whether a file is a plugin that this server can run, and what it is.
    Check {
        /// The .wasm file.
        file: PathBuf,
    },
    /// Keep a component in the database; it runs nowhere until it is activated.
    Install {
        /// The .wasm file.
        file: PathBuf,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Let a format run a component from now on, on every server.
    Activate(lifecycle::Activate),
    /// Let a format run what it ran before.
    Rollback {
        /// The format.
        format: String,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Let a component serve one repository, whatever its format runs.
    Pin(lifecycle::Pin),
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
        PluginsCommand::Install { file, settings } => lifecycle::install(file, *settings).await,
        PluginsCommand::Activate(asked) => lifecycle::activate(asked).await,
        PluginsCommand::Rollback { format, settings } => lifecycle::roll_back(&format, *settings).await,
        PluginsCommand::Pin(asked) => lifecycle::pin(asked).await,
        PluginsCommand::Record(arguments) => record::record(arguments).await,
        PluginsCommand::Recordings(arguments) => record::recordings(arguments).await,
        PluginsCommand::Replay(arguments) => replay::run(*arguments).await,
    }
}

/// Where there is no database yet, or one that a start would bring up to date, nothing is said but what lies in the folder.
async fn list(flags: SettingFlags) -> anyhow::Result<()> {
    let (config, _) = Config::load(&flags.inputs(), &program()?)?;
    let facts = examine_database(&config.store).await.unwrap_or_default();
    if facts.schema == known_schema() {
        return lifecycle::list(config).await;
    }
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
