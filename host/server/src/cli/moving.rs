//! `packhouse import` and `packhouse export`: the arguments for the crate that moves packages. Both
//! commands are clients of a running server, which may be on another machine. Credentials come from
//! files or environment variables.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use packhouse_moving::{Credential, JOBS, KINDS, RunOptions, ServerOptions, SourceOptions, Summary};

use super::print;

const LOGIN: &str = "PACKHOUSE_LOGIN";
const SOURCE_LOGIN: &str = "PACKHOUSE_SOURCE_LOGIN";
const SOURCE_TOKEN: &str = "PACKHOUSE_SOURCE_TOKEN";

/// The server of this project, and options for both directions.
#[derive(Debug, Args)]
pub(crate) struct MovingArguments {
    /// Management API of the server
    #[arg(long, value_name = "URL", env = "PACKHOUSE_API_URL", default_value = "http://127.0.0.1:8081")]
    api_url: String,
    /// File with EMAIL:PASSWORD in its first line, for the server [env: PACKHOUSE_LOGIN, the same
    /// text]
    #[arg(long, value_name = "FILE")]
    login_file: Option<PathBuf>,
    /// Move only this package; can be repeated
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Move only the packages that this file lists, one a line
    #[arg(long, value_name = "FILE")]
    packages_file: Option<PathBuf>,
    /// Number of parallel transfers
    #[arg(long, value_name = "N", default_value_t = JOBS, value_parser = jobs)]
    jobs: usize,
    /// Write a line of JSON for each item: its outcome, and the reason
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Arguments of `packhouse import REPOSITORY --from KIND SOURCE`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Hosted repository to import into
    repository: String,
    /// Kind of the source
    #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(KINDS))]
    from: String,
    /// Address of the source, or a folder
    source: String,
    /// Repository to import from, if the source has several
    #[arg(long, value_name = "NAME")]
    source_repository: Option<String>,
    /// File with NAME:PASSWORD in its first line, for the source [env: PACKHOUSE_SOURCE_LOGIN, the
    /// same text]
    #[arg(long, value_name = "FILE", conflicts_with = "source_token_file")]
    source_login_file: Option<PathBuf>,
    /// File with a token in its first line, for the source [env: PACKHOUSE_SOURCE_TOKEN, the token]
    #[arg(long, value_name = "FILE")]
    source_token_file: Option<PathBuf>,
    /// Follow redirects and links of the source to this host even though its address is internal;
    /// can be repeated
    #[arg(long = "source-host", value_name = "HOST")]
    source_hosts: Vec<String>,
    /// Record the current time as publishing time, instead of the time at the source
    #[arg(long)]
    without_times: bool,
    #[command(flatten)]
    moving: MovingArguments,
}

/// Arguments of `packhouse export REPOSITORY TO`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Hosted repository to export
    repository: String,
    /// Folder for the export: a new one, or one with an earlier export of the repository, which is
    /// updated
    #[arg(value_name = "TO")]
    to: PathBuf,
    #[command(flatten)]
    moving: MovingArguments,
}

fn jobs(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|jobs| (1..=64).contains(jobs))
        .ok_or_else(|| "must be a number from 1 to 64".to_owned())
}

impl ImportArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let ImportArguments { repository, from, source, source_repository, moving, .. } = &self;
        let from = SourceOptions {
            kind: from.clone(),
            address: source.clone(),
            repository: source_repository.clone(),
            credential: self.source_credential()?,
            hosts: self.source_hosts.clone(),
        };
        let options = RunOptions { without_times: self.without_times, ..moving.options()? };
        done(packhouse_moving::import(&moving.server(repository)?, &from, &options).await?)
    }

    fn source_credential(&self) -> anyhow::Result<Option<Credential>> {
        let files = (&self.source_login_file, &self.source_token_file);
        let credential = match (files, text(SOURCE_LOGIN), text(SOURCE_TOKEN)) {
            ((Some(file), _), _, _) => Credential::login(&Credential::first_line(file)?),
            ((_, Some(file)), _, _) => Credential::token(&Credential::first_line(file)?),
            (_, Some(login), _) => Credential::login(&login),
            (_, _, Some(token)) => Credential::token(&token),
            (_, None, None) => return Ok(None),
        };
        credential.map(Some).context("the source's credential cannot be used")
    }
}

impl ExportArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let server = self.moving.server(&self.repository)?;
        done(packhouse_moving::export(&server, &self.to, &self.moving.options()?).await?)
    }
}

impl MovingArguments {
    fn server(&self, repository: &str) -> anyhow::Result<ServerOptions> {
        let login = match (&self.login_file, text(LOGIN)) {
            (Some(file), _) => Credential::first_line(file)?,
            (None, Some(login)) => login,
            (None, None) => {
                bail!("the login for the server is missing: name a file with --login-file, or set {LOGIN}")
            }
        };
        let login = Credential::login(&login).context("the login for the server cannot be used")?;
        Ok(ServerOptions { api_url: self.api_url.clone(), login, repository: repository.to_owned() })
    }

    fn options(&self) -> anyhow::Result<RunOptions> {
        let mut only = self.packages.clone();
        if let Some(file) = &self.packages_file {
            only.extend(lines(file)?);
        }
        Ok(RunOptions { only, jobs: self.jobs, report: self.report.clone(), without_times: false })
    }
}

fn lines(file: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn text(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}

fn done(summary: Summary) -> anyhow::Result<()> {
    print(&summary.to_string())?;
    if summary.is_whole() {
        return Ok(());
    }
    bail!("some items were not moved; see the lines above and the report for the reasons")
}
