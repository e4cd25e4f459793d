//! `packhouse plugins`: what an operator asks of them, and what their authors need.

mod check;
mod dev;
mod distribution;
mod events;
mod inner;
mod lifecycle;
mod locked;
mod project;
mod record;
mod replay;
mod tables;
mod trial;
mod wire;

pub(crate) use replay::NotReplayed;
pub(super) use replay::{component, recorded_component, whole};

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Subcommand;
use packhouse_runtime::{Ahead, CompiledAhead, Inspection, LoadError, component_files, inspect};

use crate::cli::{SettingFlags, print, program};
use packhouse_config::Config;
use packhouse_store::{Store, examine_database, known_schema};

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
    Install(lifecycle::Install),
    /// Publish a component to a registry, and print its reference by digest as the last line.
    Publish(distribution::Publish),
    /// Compile every component of the folder and of the database ahead, so that the next start compiles nothing.
    Compile {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Compile the plugins of the folder for a package, whose servers then compile nothing at their first start.
    #[command(hide = true)]
    Precompile {
        /// The folder that the package has beside its `plugins`, as `compiled`.
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
        /// The plugins [default: `plugins` beside the program]
        #[arg(long, value_name = "DIR")]
        plugins: Option<PathBuf>,
    },
    /// Write down what every format runs, for `plugins install --locked` on another server.
    Lock {
        /// The file [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
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
    /// Compare what a component would answer with what is answered; no client sees it.
    Shadow(trial::Shadow),
    /// Let a component answer in some repositories, or a share of the clients; it is taken back when too many calls fail.
    Canary(trial::Canary),
    /// Say how the component does that is tried as a shadow or a canary, or take it back.
    Trial(trial::TrialOf),
    /// Write a project of a format, or of a policy, into a new folder; it builds and serves files, or judges, from the start.
    New {
        /// The name of the format or policy: 1 to 32 lower-case letters, digits and `-`.
        name: String,
        /// What it is: `format`, or `policy`, which is written in Rust.
        #[arg(long, value_name = "KIND", default_value = "format", value_parser = ["format", "policy"])]
        kind: String,
        /// What it is written in.
        #[arg(long, default_value = "rust")]
        language: String,
        /// Where the new folder, which has that name, is made.
        #[arg(long, value_name = "DIR", default_value = ".")]
        into: PathBuf,
    },
    /// Build a project's component, and print where it is.
    Build {
        /// The project's folder.
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// The component [default: target/NAME.wasm in the project, NAME being that of its folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Run a project's tests, and its protocol's tables through the component and a whole server.
    Test {
        /// The project's folder.
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Serve a project's component, build and load it anew whenever the project changes, and tell of each request.
    Dev {
        /// The project's folder.
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Keep what is stored in this folder [default: it is forgotten in the end]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Where package clients connect.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
        packages_listen: String,
        /// Where the management API and the portal listen.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
        api_listen: String,
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
            print(&check::describe(&found))
        }
        PluginsCommand::New { name, kind, language, into } => project::new(&name, &kind, &language, &into),
        PluginsCommand::Build { dir, out } => project::build(dir, out).await,
        PluginsCommand::Test { dir } => tables::test(dir).await,
        PluginsCommand::Dev { dir, data, packages_listen, api_listen } => {
            dev::dev(dir, data, packages_listen, api_listen).await
        }
        PluginsCommand::Install(asked) => lifecycle::install(asked).await,
        PluginsCommand::Publish(asked) => distribution::publish(asked).await,
        PluginsCommand::Compile { settings } => compile(*settings).await,
        PluginsCommand::Precompile { into, plugins } => precompile(into, plugins).await,
        PluginsCommand::Lock { out, settings } => locked::lock(out, *settings).await,
        PluginsCommand::Activate(asked) => lifecycle::activate(asked).await,
        PluginsCommand::Rollback { format, settings } => lifecycle::roll_back(&format, *settings).await,
        PluginsCommand::Pin(asked) => lifecycle::pin(asked).await,
        PluginsCommand::Shadow(asked) => trial::shadow(asked).await,
        PluginsCommand::Canary(asked) => trial::canary(asked).await,
        PluginsCommand::Trial(asked) => trial::trial(asked).await,
        PluginsCommand::Record(arguments) => record::record(arguments).await,
        PluginsCommand::Recordings(arguments) => record::recordings(arguments).await,
        PluginsCommand::Replay(arguments) => replay::run(*arguments).await,
    }
}

/// Where there is no database yet, or one that a start would bring up to date, nothing is said but what lies in the folder.
async fn list(flags: SettingFlags) -> anyhow::Result<()> {
    let (config, _) = Config::load(&flags.inputs(), &program()?)?;
    if has_database(&config).await {
        return lifecycle::list(config).await;
    }
    for file in files_of(&config.runtime.plugins)? {
        let found = tokio::task::spawn_blocking(move || inspect(&file)).await??;
        print(&line(&found))?;
    }
    Ok(())
}

/// One after another, as each uses all cores by itself. What is none is told in the end, as an error.
async fn compile(flags: SettingFlags) -> anyhow::Result<()> {
    let (config, _) = Config::load(&flags.inputs(), &program()?)?;
    let ahead = Ahead::new(&config.runtime)?;
    let mut refused = Vec::new();
    let mut told = |done: Result<CompiledAhead, LoadError>| match done {
        Ok(done) => compiled(&done).map(|()| Some(done.digest)),
        Err(error) => {
            refused.push(error.to_string());
            Ok(None)
        }
    };
    let mut done = Vec::new();
    for file in files_of(&config.runtime.plugins)? {
        done.extend(told(ahead.file(&file).await)?);
    }
    if has_database(&config).await {
        let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
        for row in store.components().await? {
            if !done.contains(&row.digest)
                && let Some(bytes) = store.component_bytes(&row.digest).await?
            {
                told(ahead.bytes(&row.digest, bytes).await)?;
            }
        }
        store.close().await;
    }
    ensure!(refused.is_empty(), "not compiled: {}", refused.join("; "));
    Ok(())
}

async fn precompile(into: PathBuf, plugins: Option<PathBuf>) -> anyhow::Result<()> {
    let plugins = match plugins {
        Some(plugins) => plugins,
        None => program()?.with_file_name("plugins"),
    };
    let done = tokio::task::spawn_blocking(move || packhouse_runtime::precompile(&plugins, &into)).await??;
    for one in done {
        let word = if one.compiled { "compiled" } else { "kept" };
        print(&format!("{}\t{}\t{word}", one.file.display(), one.digest))?;
    }
    Ok(())
}

fn compiled(done: &CompiledAhead) -> anyhow::Result<()> {
    let CompiledAhead { format, version, digest, work } = done;
    let word = if work.compiled { "compiled" } else { "kept" };
    print(&format!("{format}\t{version}\t{digest}\t{word}\t{} ms", work.took.as_millis()))
}

/// The components of the plugin folder, sorted by name.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    component_files(folder).with_context(|| format!("failed to read the plugin folder {}", folder.display()))
}

/// Whether there is a database that need not be brought up to date.
async fn has_database(config: &Config) -> bool {
    let facts = examine_database(&config.store).await.unwrap_or_default();
    facts.schema == known_schema()
}

fn line(found: &Inspection) -> String {
    let description = &found.description;
    let kinds = description.kinds.join(", ");
    format!("{}\t{}\t{kinds}\t{}", description.format, description.version, found.file.display())
}
