//! `packhouse plugins`: commands for operators and for authors of plugins.

mod check;
mod child_server;
mod dev;
mod distribution;
mod events;
mod lifecycle;
mod locked;
mod project;
mod record;
mod remote;
mod replay;
mod tables;
mod wire;

pub(crate) use replay::NotReplayed;
pub(super) use replay::{component, recorded_component, whole};

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Subcommand;
use packhouse_runtime::{Inspection, LoadError, PrecompiledComponent, Precompiler, component_files, inspect};

use crate::cli::remote::ServerFlags;
use crate::cli::{SettingFlags, print, program};
use packhouse_config::Config;
use packhouse_store::{Store, examine_database, known_schema};

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// List the components in the plugin folder and in the database, with their state
    List {
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Check whether this server can run a plugin file, and describe it
    Check {
        /// Component file (.wasm)
        file: PathBuf,
    },
    /// Install a component in the database; it does not run until it is activated
    Install(lifecycle::Install),
    /// Publish a component to a registry and print its reference by digest as the last line
    Publish(distribution::Publish),
    /// Compile all components of the folder and the database, so that the next start compiles
    /// nothing
    Compile {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Compile the plugins of the folder for a package, so that servers installed from it compile
    /// nothing at their first start
    #[command(hide = true)]
    Precompile {
        /// Output folder; the package installs it as `compiled` beside its `plugins`
        #[arg(long, value_name = "FOLDER")]
        into: PathBuf,
        /// Plugin folder [default: `plugins` beside the program]
        #[arg(long, value_name = "DIR")]
        plugins: Option<PathBuf>,
    },
    /// Write the active component of every format to a lock file, for `plugins install --locked` on
    /// another server
    Lock {
        /// Lock file [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Make a component the active one of its format, on every server
    Activate(lifecycle::Activate),
    /// Make the previous component of a format active again
    Rollback {
        /// Name of the format
        format: String,
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Pin a repository to a component, whichever its format runs
    Pin(lifecycle::Pin),
    /// Create a project for a format or policy in a new folder; it builds and works from the start
    New {
        /// Name of the format or policy: 1 to 32 lower-case letters, digits and `-`
        name: String,
        /// Kind of project: `format`, or `policy` (Rust only)
        #[arg(long, value_name = "KIND", default_value = "format", value_parser = ["format", "policy"])]
        kind: String,
        /// Programming language
        #[arg(long, default_value = "rust")]
        language: String,
        /// Folder in which the project's folder is created
        #[arg(long, value_name = "DIR", default_value = ".")]
        into: PathBuf,
    },
    /// Build a project's component and print its path
    Build {
        /// Folder of the project
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Output file [default: target/NAME.wasm in the project, where NAME is the name of its
        /// folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Run a project's tests, and its protocol tables against its component in a server
    Test {
        /// Folder of the project
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
    /// Serve a project's component, rebuild and reload it whenever the project changes, and print
    /// each request
    Dev {
        /// Folder of the project
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Keep the data in this folder [default: data are deleted at the end]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Listen address for package clients
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
        packages_listen: String,
        /// Listen address of the management API and the portal
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
        api_listen: String,
    },
    /// Record calls of a repository's plugin for a replay
    Record(record::RecordArguments),
    /// List the recordings of a repository, or print one recording
    Recordings(record::RecordingsArguments),
    /// Run a recorded call again and report differences; exits with 0 for the same result, 1 for
    /// another one, 2 if the call cannot be run
    Replay(Box<replay::ReplayArguments>),
}

pub(crate) async fn run(command: PluginsCommand) -> anyhow::Result<()> {
    match command {
        PluginsCommand::List { server, settings } => match server.connect(&settings)? {
            Some(api) => remote::list(&api).await,
            None => list(*settings).await,
        },
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
        PluginsCommand::Install(arguments) => lifecycle::install(arguments).await,
        PluginsCommand::Publish(arguments) => distribution::publish(arguments).await,
        PluginsCommand::Compile { settings } => compile(*settings).await,
        PluginsCommand::Precompile { into, plugins } => precompile(into, plugins).await,
        PluginsCommand::Lock { out, server, settings } => match server.connect(&settings)? {
            Some(api) => locked::lock_of_server(out, &api).await,
            None => locked::lock(out, *settings).await,
        },
        PluginsCommand::Activate(arguments) => lifecycle::activate(arguments).await,
        PluginsCommand::Rollback { format, server, settings } => match server.connect(&settings)? {
            Some(api) => remote::roll_back(&api, &format).await,
            None => lifecycle::roll_back(&format, *settings).await,
        },
        PluginsCommand::Pin(arguments) => lifecycle::pin(arguments).await,
        PluginsCommand::Record(arguments) => record::record(arguments).await,
        PluginsCommand::Recordings(arguments) => record::recordings(arguments).await,
        PluginsCommand::Replay(arguments) => replay::run(*arguments).await,
    }
}

/// Lists components. Without a database with the current schema, lists only the components in the
/// folder.
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

/// Compiles one component after another, because each uses all cores. Files that are not valid
/// components are reported at the end as an error.
async fn compile(flags: SettingFlags) -> anyhow::Result<()> {
    let (config, _) = Config::load(&flags.inputs(), &program()?)?;
    let ahead = Precompiler::new(&config.runtime)?;
    let mut refused = Vec::new();
    let mut report = |done: Result<PrecompiledComponent, LoadError>| match done {
        Ok(done) => compiled(&done).map(|()| Some(done.digest)),
        Err(error) => {
            refused.push(error.to_string());
            Ok(None)
        }
    };
    let mut done = Vec::new();
    for file in files_of(&config.runtime.plugins)? {
        done.extend(report(ahead.file(&file).await)?);
    }
    if has_database(&config).await {
        let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
        for row in store.components().await? {
            if !done.contains(&row.digest)
                && let Some(bytes) = store.component_bytes(&row.digest).await?
            {
                report(ahead.bytes(&row.digest, bytes).await)?;
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

fn compiled(done: &PrecompiledComponent) -> anyhow::Result<()> {
    let PrecompiledComponent { format, version, digest, work } = done;
    let word = if work.compiled { "compiled" } else { "kept" };
    print(&format!("{format}\t{version}\t{digest}\t{word}\t{} ms", work.took.as_millis()))
}

/// Returns the components of the plugin folder, sorted by name.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    component_files(folder).with_context(|| format!("failed to read the plugin folder {}", folder.display()))
}

/// Returns true if there is a database with the current schema.
async fn has_database(config: &Config) -> bool {
    let facts = examine_database(&config.store).await.unwrap_or_default();
    facts.schema == known_schema()
}

fn line(found: &Inspection) -> String {
    let description = &found.description;
    let kinds = description.kinds.join(", ");
    format!("{}\t{}\t{kinds}\t{}", description.format, description.version, found.file.display())
}
