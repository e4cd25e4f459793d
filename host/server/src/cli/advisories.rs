//! `packhouse advisories`: what is known to be wrong with packages, brought in from what the operator has. All of it can be done beside a
//! running server, which follows within a second.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;
use packhouse_advisories::{ImportOptions, Imported, OsvRecord, Severity, import};
use packhouse_store::{AdvisoryFilter, AdvisoryTotals, ListedAdvisory, Store};

use super::{SettingFlags, print, settings};

/// Advisories that are listed at once.
const PAGE: u32 = 500;

#[derive(Debug, Subcommand)]
pub(crate) enum AdvisoriesCommand {
    /// Bring in OSV records: new ones, and those that are newer than what is there.
    Import {
        /// A folder, a zip archive as databases publish it, a tar archive, or one record.
        path: PathBuf,
        /// Take away all that is not among them.
        #[arg(long)]
        replace: bool,
        /// Only records about packages of this ecosystem, as npm or PyPI; may stand several times.
        #[arg(long, value_name = "NAME")]
        ecosystem: Vec<String>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// List advisories, or those about one package.
    List {
        /// What OSV calls the package's ecosystem, as npm or PyPI.
        #[arg(long, value_name = "NAME", requires = "package")]
        ecosystem: Option<String>,
        /// The package.
        #[arg(long, value_name = "NAME", requires = "ecosystem")]
        package: Option<String>,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Print the record of an advisory.
    Show {
        /// As GHSA-xxxx-xxxx-xxxx.
        id: String,
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// Say how many there are, and how old they are.
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
            told(&imported.context("the advisories were not brought in to the end")?)
        }
        AdvisoriesCommand::List { ecosystem, package, settings } => {
            let store = open(*settings).await?;
            let listed = list(&store, ecosystem.zip(package)).await;
            store.close().await;
            listed
        }
        AdvisoriesCommand::Show { id, settings } => {
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
                print(&format!("the one that was changed last: {}", day(modified)))?;
            }
            match state?.changed_at {
                Some(at) => print(&format!("brought in last: {}", day(at))),
                None => print("none were ever brought in"),
            }
        }
    }
}

async fn open(flags: SettingFlags) -> anyhow::Result<Store> {
    Store::open(settings(flags)?.store).await.context("failed to open the store")
}

fn told(imported: &Imported) -> anyhow::Result<()> {
    for problem in &imported.problems {
        print(&format!("passed over: {problem}"))?;
    }
    let Imported { put, passed_over, removed, refused, .. } = imported;
    print(&format!(
        "{} added, {} changed, {} no newer, {passed_over} of other ecosystems, {removed} removed, {refused} files that are no records",
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

fn line(advisory: &ListedAdvisory) -> String {
    let ListedAdvisory { id, modified, withdrawn, severity, malware, summary } = advisory;
    let severity = if *malware { "malware" } else { Severity::of_rank(*severity).as_str() };
    let withdrawn = if withdrawn.is_some() { " (withdrawn)" } else { "" };
    format!("{id}\t{severity}\t{}\t{}{withdrawn}", day(*modified), summary.replace(['\t', '\n', '\r'], " "))
}

/// The day of a time in ms since 1970, in UTC.
fn day(at: i64) -> String {
    OsvRecord::day(at)
}
