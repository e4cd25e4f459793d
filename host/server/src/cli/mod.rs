//! The command line.

mod accounts;
mod advisories;
mod backup;
mod compiled;
mod compiling;
mod doctor;
mod health;
mod migrate;
mod moving;
mod opened;
mod plugins;
mod policies;
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

/// A package repository server.
#[derive(Debug, Parser)]
#[command(name = "packhouse", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve package clients and the management API.
    Serve {
        /// End when standard input does: for a program that starts a server for itself and may be killed.
        #[arg(long, hide = true)]
        until_stdin_ends: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Ask the server of these settings whether requests should be sent to it; 0 when they should.
    Healthcheck {
        /// Ask no more than whether the process runs.
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Look at everything that a server needs, and say what is not well and what to do about it.
    Doctor {
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Bring the schema of the database up to date, as every start does.
    Migrate {
        /// Only say whether there is anything to do; an error where there is.
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// The settings.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// The format plugins.
    Plugins {
        #[command(subcommand)]
        command: plugins::PluginsCommand,
    },
    /// Policies over versions: what was recorded of their calls.
    Policies {
        #[command(subcommand)]
        command: policies::PoliciesCommand,
    },
    /// Organizations.
    Org {
        #[command(subcommand)]
        command: accounts::OrgCommand,
    },
    /// Members.
    Member {
        #[command(subcommand)]
        command: accounts::MemberCommand,
    },
    /// Tokens and service keys.
    Token {
        #[command(subcommand)]
        command: accounts::TokenCommand,
    },
    /// Repositories.
    Repo {
        #[command(subcommand)]
        command: accounts::RepoCommand,
    },
    /// Read every stored blob and compare it with its digest.
    Scrub {
        /// Bytes a second at most, as in 50MB; without it as fast as they can be read.
        #[arg(long, value_name = "SIZE", value_parser = config::bytes)]
        rate: Option<u64>,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Take a backup, beside a running server or without one; or look after those there are.
    Backup(Box<backup::BackupArguments>),
    /// Put a backup into an empty data folder, or an empty database and bucket.
    Restore(Box<backup::RestoreArguments>),
    /// Move what another server or a folder holds into a repository of a running server; run again, it goes on where it broke off.
    Import(Box<moving::ImportArguments>),
    /// Move a repository of a running server into a folder, in the layout of its format.
    Export(Box<moving::ExportArguments>),
    /// What is known to be wrong with packages, from OSV records that you have.
    Advisories {
        #[command(subcommand)]
        command: advisories::AdvisoriesCommand,
    },
    /// Policies that delete what is old or not used.
    Retention {
        #[command(subcommand)]
        command: retention::RetentionCommand,
    },
    /// Compile the component that comes on standard input: what a server starts for itself.
    #[command(hide = true)]
    CompileComponent {
        #[arg(long)]
        memory_bytes: usize,
        #[arg(long)]
        pool: Option<usize>,
    },
    /// Collect garbage once.
    Gc {
        #[command(flatten)]
        settings: SettingFlags,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print each setting and where it came from, without secrets.
    Show {
        /// As a JSON object of {value, source, about} by name.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        settings: SettingFlags,
    },
}

/// Settings as flags; each is a variable and a key of the file as well, which a flag wins over.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingFlags {
    /// Configuration file [env: PACKHOUSE_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder [default: ./data]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// Where package clients connect [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    packages_listen: Option<String>,
    /// Where the management API listens [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR")]
    api_listen: Option<String>,
    /// A listener for /metrics alone
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    /// Public address of the repository host
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Public address of the management API
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// sqlite://PATH or postgres://…
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// fs or s3://BUCKET?…
    #[arg(long, value_name = "WHERE")]
    blobs: Option<String>,
    /// Folder of the plugins [default: `plugins` beside the program]
    #[arg(long, value_name = "DIR")]
    plugins: Option<String>,
    /// Private networks in which upstreams may be
    #[arg(long, value_name = "NETWORKS")]
    upstream_allow_networks: Option<String>,
    /// What is logged [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
}

impl SettingFlags {
    /// With the environment of the process.
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

/// What commands log where nothing is set: their result shall not be lost among what a server says of its work.
const LOG_OF_COMMANDS: &str = "warn";

/// The settings of a command, with the log started by them.
fn settings(flags: SettingFlags) -> anyhow::Result<Config> {
    let (mut config, warnings) = Config::load(&flags.inputs(), &program()?)?;
    if !config.sources.is_set("log") {
        LOG_OF_COMMANDS.clone_into(&mut config.log);
    }
    logged(config, warnings)
}

/// The settings of a server, with the log started by them.
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

/// Does what the command line says.
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
            Command::Advisories { command } => advisories::run(command).await,
            Command::Retention { command } => retention::run(command).await,
            Command::CompileComponent { memory_bytes, pool } => {
                compiling::run(&EngineOptions { pool, memory_bytes })
            }
            Command::Gc { settings: flags } => upkeep::collect_garbage(settings(flags)?).await,
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the threads of the program")?;
    let done = runtime.block_on(work);
    // What still hangs by now, on a disk or a database that does not answer, does not keep the program.
    runtime.shutdown_background();
    done
}

/// What a command was asked for goes to standard output; everything else is logged. Whoever reads may stop reading, as `head` does.
fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(()),
    }
}
