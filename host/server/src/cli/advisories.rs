//! `packhouse advisories`: imports and lists security advisories. The commands can run beside a
//! server, which picks up changes within a second. With `--server`, `list` and `show` call the API.

use crate::cli::json::Members as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;
use packhouse_advisories::{ImportOptions, Imported, OsvRecord, Severity, import};
use packhouse_store::{AdvisoryFilter, AdvisoryTotals, ListedAdvisory, Store};

use super::remote::{ApiClient, ServerFlags, text};
use super::{SettingFlags, print, settings};

/// Advisories per database query.
const PAGE: u32 = 500;

#[derive(Debug, Subcommand)]
pub(crate) enum AdvisoriesCommand {
    /// Import OSV records that are new, or newer than the stored ones
    Import {
        /// A folder, a zip archive of an OSV database, a tar archive, or one record
        path: PathBuf,
        /// Remove all stored advisories that are not in the import
        #[arg(long)]
        replace: bool,
        /// Import only records about this ecosystem, such as npm or PyPI; can be repeated
        #[arg(long, value_name = "NAME")]
        ecosystem: Vec<String>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// List all advisories, or those about one package
    List {
        /// OSV ecosystem of the package, such as npm or PyPI
        #[arg(long, value_name = "NAME", requires = "package")]
        ecosystem: Option<String>,
        /// Name of the package
        #[arg(long, value_name = "NAME", requires = "ecosystem")]
        package: Option<String>,
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Print the OSV record of an advisory
    Show {
        /// Advisory id, such as GHSA-xxxx-xxxx-xxxx
        id: String,
        #[command(flatten)]
        server: Box<ServerFlags>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Print how many advisories are stored and how recent they are
    Status {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
}

pub(crate) async fn run(command: AdvisoriesCommand) -> anyhow::Result<()> {
    match command {
        AdvisoriesCommand::Import { path, replace, ecosystem, settings } => {
            let store = open(*settings).await?;
            let options = ImportOptions { replace, ecosystems: ecosystem };
            let imported = import(&store, &path, &options).await;
            store.close().await;
            print_import(&imported.context("the import of advisories did not finish")?)
        }
        AdvisoriesCommand::List { ecosystem, package, server, settings } => {
            let package = ecosystem.zip(package);
            if let Some(api) = server.connect(&settings)? {
                return list_of_server(&api, package).await;
            }
            let store = open(*settings).await?;
            let listed = list(&store, package).await;
            store.close().await;
            listed
        }
        AdvisoriesCommand::Show { id, server, settings } => {
            if let Some(api) = server.connect(&settings)? {
                return print(&api.get_text(&["vulns", &id]).await?);
            }
            let store = open(*settings).await?;
            let found = store.advisory(&id).await;
            store.close().await;
            match found? {
                Some(record) => print(&record),
                None => bail!("there is no advisory {id}"),
            }
        }
        AdvisoriesCommand::Status { settings } => {
            let store = open(*settings).await?;
            let (state, totals) = (store.advisory_state().await, store.advisory_totals().await);
            store.close().await;
            let AdvisoryTotals { advisories, malware, modified } = totals?;
            print(&format!("{advisories} advisories, {malware} of them about malware"))?;
            if let Some(modified) = modified {
                print(&format!("most recent change: {}", day(modified)))?;
            }
            match state?.changed_at {
                Some(at) => print(&format!("last import: {}", day(at))),
                None => print("no advisories have been imported"),
            }
        }
    }
}

async fn open(flags: SettingFlags) -> anyhow::Result<Store> {
    Store::open(settings(flags)?.store).await.context("failed to open the store")
}

fn print_import(imported: &Imported) -> anyhow::Result<()> {
    for problem in &imported.problems {
        print(&format!("skipped: {problem}"))?;
    }
    let Imported { put, passed_over, removed, refused, .. } = imported;
    print(&format!(
        "{} added, {} changed, {} already up to date, {passed_over} of other ecosystems, {removed} removed, {refused} files that are not valid records",
        put.added, put.changed, put.unchanged
    ))
}

async fn list(store: &Store, package: Option<(String, String)>) -> anyhow::Result<()> {
    let mut filter = AdvisoryFilter { package, ..AdvisoryFilter::default() };
    loop {
        let page = store.list_advisories(&filter, PAGE).await?;
        for advisory in &page {
            print(&line(advisory))?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => filter.after.clone_from(&last.id),
            _ => return Ok(()),
        }
    }
}

async fn list_of_server(api: &ApiClient, package: Option<(String, String)>) -> anyhow::Result<()> {
    let query = match &package {
        Some((ecosystem, name)) => vec![("ecosystem", ecosystem.as_str()), ("package", name.as_str())],
        None => Vec::new(),
    };
    for advisory in api.list_with(&["advisories"], &query).await? {
        let malware = advisory.at("malware").as_bool().unwrap_or_default();
        let withdrawn = !advisory.at("withdrawn").is_null();
        let modified = advisory.at("modified").as_i64().unwrap_or_default();
        let [id, severity, summary] = ["id", "severity", "summary"].map(|field| text(&advisory, field));
        print(&row(id, if malware { "malware" } else { severity }, modified, summary, withdrawn))?;
    }
    Ok(())
}

fn line(advisory: &ListedAdvisory) -> String {
    let ListedAdvisory { id, modified, withdrawn, severity, malware, summary } = advisory;
    let severity = if *malware { "malware" } else { Severity::of_rank(*severity).as_str() };
    row(id, severity, *modified, summary, withdrawn.is_some())
}

fn row(id: &str, severity: &str, modified: i64, summary: &str, withdrawn: bool) -> String {
    let withdrawn = if withdrawn { " (withdrawn)" } else { "" };
    format!("{id}\t{severity}\t{}\t{}{withdrawn}", day(modified), summary.replace(['\t', '\n', '\r'], " "))
}

/// Formats a time in ms since 1970 as a UTC date.
fn day(at: i64) -> String {
    OsvRecord::day(at)
}
