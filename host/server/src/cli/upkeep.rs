//! `packhouse scrub` and `packhouse gc`: maintenance by hand. Both can run beside a server.

use anyhow::{Context, bail};
use packhouse_store::{Damaged, Store};

use super::print;
use packhouse_config::Config;

async fn open(config: Config) -> anyhow::Result<Store> {
    Store::open(config.store).await.context("failed to open the store")
}

/// Deletes unreferenced blobs and expired uploads once.
pub(crate) async fn collect_garbage(config: Config) -> anyhow::Result<()> {
    let store = open(config).await?;
    let collected = store.collect_garbage().await.context("failed to collect garbage")?;
    store.close().await;
    print(&format!(
        "removed {} blobs of {} bytes, {} expired uploads, {} leftovers of crashes",
        collected.blobs, collected.bytes, collected.uploads, collected.leftovers
    ))
}

/// Verifies every blob, reading at most `bytes_per_second`. Fails if a blob is damaged.
pub(crate) async fn scrub(config: Config, bytes_per_second: Option<u64>) -> anyhow::Result<()> {
    let store = open(config).await?;
    let report = store.scrub(bytes_per_second).await.context("failed to check the blobs")?;
    store.close().await;
    print(&format!("read {} blobs of {} bytes", report.blobs, report.bytes))?;
    for damaged in &report.damaged {
        print(&describe(damaged))?;
    }
    match report.damaged.len() {
        0 => Ok(()),
        count => bail!("{count} blobs are damaged or missing"),
    }
}

fn describe(damaged: &Damaged) -> String {
    let state = if damaged.missing { "missing" } else { "damaged" };
    let records: Vec<String> =
        damaged.records.iter().map(|(repository, key)| format!("{repository} {key}")).collect();
    format!("{state} sha256:{} {}", damaged.sha256, records.join(", "))
}
