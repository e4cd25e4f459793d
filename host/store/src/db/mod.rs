//! Access to SQLite and PostgreSQL through one interface. Both use the same SQL text with `$1`
//! placeholders, times as BIGINT in ms, and booleans as 0 and 1.

mod arrays;
mod checkpoints;
mod clock;
mod committed;
mod counters;
mod database;
mod generation;
#[cfg(test)]
mod lists;
mod local_row;
mod local_statement;
mod migrate;
mod multi_row;
mod older_servers;
mod open;
mod open_files;
#[cfg(test)]
mod plans;
mod pool;
mod pooler;
mod probe;
mod servers;
mod snapshot;
mod sqlite_readers;
mod sqlite_writer;
mod transaction;
mod value;

pub(crate) use clock::millis;
pub(crate) use committed::{Acknowledgement, Announcer, Committed, LeaseHolder, max_lease_wait};
pub(crate) use database::Database;
pub use generation::Generation;
pub(crate) use migrate::{OpenPurpose, STEPS, UNFINISHED, unfinished};
pub(crate) use multi_row::{MultiRow, ResultColumn, found, placeholders};
pub(crate) use older_servers::FEATURES;
pub use pool::Connections;
pub(crate) use pool::{ConnectionPurpose, is_timeout};
pub(crate) use pooler::{MIXES_STATEMENTS, keeps_statements_apart};
pub use probe::DatabaseHealth;
pub(crate) use servers::Servers;
pub(crate) use snapshot::SnapshotReader;
pub(crate) use sqlite_writer::Failed;
pub(crate) use transaction::{Patience, Transaction, is_blocked, is_retryable};
pub(crate) use value::{Columns, Row, Sql, Value, columns_of, signed, values};
