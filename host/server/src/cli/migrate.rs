//! `packhouse migrate`: brings the schema of the database up to date, as every start does, or says whether there is anything to do.

use anyhow::{Context, bail};
use packhouse_config::Config;
use packhouse_store::{Store, examine_database, known_schema};

use super::print;

/// Takes the steps that are missing.
pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    let before = examine_database(&config.store).await.context("failed to look at the database")?.schema;
    let store = Store::open(config.store).await.context("failed to bring the schema up to date")?;
    store.close().await;
    print(&format!("the schema is at step {} of {0}; it was at {before}", known_schema()))
}

/// Says where the schema is, and changes nothing. An error where it is not what this program knows.
pub(super) async fn check(config: &Config) -> anyhow::Result<()> {
    let facts = examine_database(&config.store).await.context("failed to look at the database")?;
    let known = known_schema();
    match facts.schema {
        schema if schema == known => {
            print(&format!("the schema is at step {known} of {known}: there is nothing to do"))
        }
        schema if schema > known => bail!(
            "the database was written by a newer version of this program: its schema is at step {schema}, and this program knows \
             {known}; start that version"
        ),
        schema => bail!(
            "the schema is at step {schema} of {known}: `packhouse migrate`, or the next start, takes the rest; a server of the \
             version before goes on beside it"
        ),
    }
}
