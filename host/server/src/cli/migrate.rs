//! `packhouse migrate`: brings the database schema up to date, as every start does, or checks
//! whether it is.

use anyhow::{Context, bail};
use packhouse_config::Config;
use packhouse_store::{Store, examine_database, known_schema};

use super::print;

/// Applies the missing schema steps.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    let before = examine_database(&config.store).await.context("failed to inspect the database")?.schema;
    let store = Store::open(config.store).await.context("failed to update the schema")?;
    store.close().await;
    print(&format!("the schema is at step {} of {0}; it was at {before}", known_schema()))
}

/// Reports the schema step without changing anything. Fails if this program knows another step.
pub(super) async fn check(config: &Config) -> anyhow::Result<()> {
    let facts = examine_database(&config.store).await.context("failed to inspect the database")?;
    let known = known_schema();
    match facts.schema {
        schema if schema == known => {
            print(&format!("the schema is at step {known} of {known}: there is nothing to do"))
        }
        schema if schema > known => bail!(
            "the database was written by a newer version of this program: its schema is at step {schema}, and this \
             program knows {known}; start that version"
        ),
        schema => bail!(
            "the schema is at step {schema} of {known}: `packhouse migrate` or the next start applies the rest; servers \
             of the previous version can continue beside it"
        ),
    }
}
