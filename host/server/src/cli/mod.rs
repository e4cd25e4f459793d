//! The command line: commands, their flags and the settings that they share.

mod accounts;
mod advisories;
mod apply;
mod backup;
mod compiled;
mod compiling;
mod docs;
mod doctor;
mod health;
mod json;
mod migrate;
mod moving;
mod opened;
mod plugins;
mod policies;
mod remote;
mod retention;
mod upkeep;

pub(crate) use compiling::NotCompiled;
pub(crate) use plugins::NotReplayed;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

use crate::{log, serve};
use packhouse_app::reload::Reloading;
use packhouse_config::{self as config, Config, Inputs};
use packhouse_runtime::EngineOptions;

/// Package repository server
#[derive(Debug, Parser)]
#[command(name = "packhouse", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve package clients and the management API
    Serve {
        /// Stop when standard input ends: for programs that start a server for themselves and may
        /// be killed
        #[arg(long, hide = true)]
        until_stdin_ends: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Check whether the server of these settings is ready for requests; exits with 0 if it is
    Healthcheck {
        /// Only check whether the process is running
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Check the installation and suggest fixes
    Doctor {
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Bring the database schema up to date, as every start does
    Migrate {
        /// Only report whether the schema is up to date; fails if it is not
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Show the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Manage, write and test format plugins
    Plugins {
        #[command(subcommand)]
        command: plugins::PluginsCommand,
    },
    /// Inspect and replay recorded policy calls
    Policies {
        #[command(subcommand)]
        command: policies::PoliciesCommand,
    },
    /// Manage organizations
    Org {
        #[command(subcommand)]
        command: accounts::OrgCommand,
    },
    /// Manage members of organizations
    Member {
        #[command(subcommand)]
        command: accounts::MemberCommand,
    },
    /// Manage tokens and service keys
    Token {
        #[command(subcommand)]
        command: accounts::TokenCommand,
    },
    /// Manage repositories
    Repo {
        #[command(subcommand)]
        command: accounts::RepoCommand,
    },
    /// Read every stored blob and compare it with its digest
    Scrub {
        /// Most bytes to read per second, such as 50MB; unlimited by default
        #[arg(long, value_name = "SIZE", value_parser = config::bytes)]
        rate: Option<u64>,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Take, list, check or remove backups, with or without a running server
    Backup(Box<backup::BackupArguments>),
    /// Restore a backup into an empty data folder, or an empty database and bucket
    Restore(Box<backup::RestoreArguments>),
    /// Import packages from another server or a folder into a repository of a running server; an
    /// interrupted import continues when run again
    Import(Box<moving::ImportArguments>),
    /// Export a repository of a running server to a folder, in the layout of its format
    Export(Box<moving::ExportArguments>),
    /// Store the API token of a server for the commands with --server, after checking it
    Login(remote::LoginArguments),
    /// Forget the API token of a server
    Logout(remote::LogoutArguments),
    /// Change a server to match the documents in a folder: repositories, teams, service accounts,
    /// policies, webhooks and trusted publishers
    Apply(Box<apply::ApplyArguments>),
    /// Write the configuration of a server as documents for `packhouse apply`, without secrets
    ExportConfig(Box<apply::ExportConfigArguments>),
    /// Import and list security advisories (OSV records)
    Advisories {
        #[command(subcommand)]
        command: advisories::AdvisoriesCommand,
    },
    /// Run retention policies, which delete old or unused versions
    Retention {
        #[command(subcommand)]
        command: retention::RetentionCommand,
    },
    /// Compile the component on standard input; the server runs this itself
    #[command(hide = true)]
    CompileComponent {
        #[arg(long)]
        memory_bytes: usize,
        #[arg(long)]
        pool: Option<usize>,
    },
    /// Write the reference pages of the documentation
    #[command(hide = true)]
    Docs(docs::DocsArguments),
    /// Delete unreferenced blobs, expired uploads and leftovers of crashes once
    Gc {
        #[command(flatten)]
        settings: SettingFlags,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print each setting and where it came from, without secrets
    Show {
        /// Print a JSON object of {value, source, about} by name
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
}

/// Settings as flags. Each is also an environment variable and a key of the file; the flag takes
/// precedence.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingFlags {
    /// Configuration file [env: PACKHOUSE_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder [default: ./data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Listen address for package clients [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    packages_listen: Option<String>,
    /// Listen address of the management API [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR")]
    api_listen: Option<String>,
    /// Separate listen address for /metrics
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    /// Public address of the repository host
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Public address of the management API
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// Database: sqlite://PATH or postgres://…
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Blob storage: fs or s3://BUCKET?…
    #[arg(long, value_name = "WHERE")]
    blobs: Option<String>,
    /// Plugin folder [default: `plugins` beside the program]
    #[arg(long, value_name = "DIR")]
    plugins: Option<String>,
    /// Private networks that upstreams may be in
    #[arg(long, value_name = "NETWORKS")]
    upstream_allow_networks: Option<String>,
    /// Log filter [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

impl SettingFlags {
    /// Returns whether a flag was given.
    fn is_given(&self) -> bool {
        let texts = [
            &self.data,
            &self.packages_listen,
            &self.api_listen,
            &self.metrics_listen,
            &self.base_url,
            &self.api_url,
            &self.database_url,
            &self.blobs,
            &self.plugins,
            &self.upstream_allow_networks,
            &self.log,
        ];
        self.config.is_some() || texts.iter().any(|text| text.is_some())
    }

    /// Combines these flags with the environment of the process.
    fn inputs(self) -> Inputs {
        let flags = [
            ("data", "--data", self.data),
            ("packages_listen", "--packages-listen", self.packages_listen),
            ("api_listen", "--api-listen", self.api_listen),
            ("metrics_listen", "--metrics-listen", self.metrics_listen),
            ("base_url", "--base-url", self.base_url),
            ("api_url", "--api-url", self.api_url),
            ("database_url", "--database-url", self.database_url),
            ("blobs", "--blobs", self.blobs),
            ("plugins.dir", "--plugins", self.plugins),
            ("upstream.allow_networks", "--upstream-allow-networks", self.upstream_allow_networks),
            ("log", "--log", self.log),
        ];
        let flags = flags.into_iter().filter_map(|(name, flag, text)| Some((name, flag, text?))).collect();
        let environment = std::env::vars_os()
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
            .collect();
        Inputs { file: self.config, environment, flags }
    }
}

/// Default log filter of commands, so that log lines do not bury their output.
const LOG_OF_COMMANDS: &str = "warn";

/// Loads the settings of a command and starts the log.
fn settings(flags: SettingFlags) -> anyhow::Result<Config> {
    let (mut config, warnings) = Config::load(&flags.inputs(), &program()?)?;
    if !config.sources.is_set("log") {
        LOG_OF_COMMANDS.clone_into(&mut config.log);
    }
    logged(config, warnings)
}

/// Loads the settings of a server and starts the log.
fn settings_of(inputs: &Inputs, program: &Path) -> anyhow::Result<Config> {
    let (config, warnings) = Config::load(inputs, program)?;
    logged(config, warnings)
}

fn logged(config: Config, warnings: Vec<String>) -> anyhow::Result<Config> {
    log::start(&config.log, config.tracing.as_ref())?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("failed to find the program's own file")
}

pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let work = async {
        match cli.command {
            Command::Serve { until_stdin_ends, settings: flags } => {
                if until_stdin_ends {
                    serve::end_with_stdin(0);
                }
                let (inputs, program) = (flags.inputs(), program()?);
                let mut config = settings_of(&inputs, &program)?;
                config.runtime.compiling = Some(compiling::process());
                serve::serve(config, Reloading::new(inputs, program, log::set)).await
            }
            Command::Doctor { settings: flags } => doctor::run(&flags.inputs(), &program()?).await,
            Command::Migrate { check: true, settings: flags } => migrate::check(&settings(flags)?).await,
            Command::Migrate { check: false, settings: flags } => migrate::run(settings(flags)?).await,
            Command::Healthcheck { live, settings } => {
                let (config, _) = Config::load(&settings.inputs(), &program()?)?;
                health::check(&config, live).await
            }
            Command::Config { command: ConfigCommand::Show { json, settings } } => {
                print(&config::show(&settings.inputs(), &program()?, json)?)
            }
            Command::Plugins { command } => plugins::run(command).await,
            Command::Policies { command } => policies::run(command).await,
            Command::Org { command } => command.run().await,
            Command::Member { command } => command.run().await,
            Command::Token { command } => command.run().await,
            Command::Repo { command } => command.run().await,
            Command::Scrub { rate, settings: flags } => upkeep::scrub(settings(flags)?, rate).await,
            Command::Backup(arguments) => arguments.run().await,
            Command::Restore(arguments) => arguments.run().await,
            Command::Import(arguments) => arguments.run().await,
            Command::Export(arguments) => arguments.run().await,
            Command::Login(arguments) => arguments.run().await,
            Command::Logout(arguments) => arguments.run(),
            Command::Apply(arguments) => arguments.run().await,
            Command::ExportConfig(arguments) => arguments.run().await,
            Command::Advisories { command } => advisories::run(command).await,
            Command::Retention { command } => retention::run(command).await,
            Command::CompileComponent { memory_bytes, pool } => {
                compiling::run(&EngineOptions { pool, memory_bytes })
            }
            Command::Docs(arguments) => arguments.run(),
            Command::Gc { settings: flags } => upkeep::collect_garbage(settings(flags)?).await,
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the threads of the program")?;
    let done = runtime.block_on(work);
    // Tasks that still hang on a disk or a database must not keep the program from exiting.
    runtime.shutdown_background();
    done
}

/// Prints a command's result to standard output; everything else is logged. A pipe that a reader
/// such as `head` closes early is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(()),
    }
}
