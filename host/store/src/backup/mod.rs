//! What a backup and its restore need of the store: all rows as they were at one moment, whatever the database is, the bytes of
//! the blobs that they name, and a way to put both into an empty place.
//!
//! - [`Snapshot`]: the rows of one moment. [`tables`] says which tables there are, and which of them are left out.
//! - [`BlobHold`]: from before that moment no blob is collected, until the last one is copied.
//! - [`Restoring`]: a place that is being filled. No server opens it before it is whole.

mod blobs;
mod hold;
mod of_place;
mod restore;
mod rows;
mod runs;
mod snapshot;
mod tables;

pub use blobs::SnapshotBlob;
pub use hold::BlobHold;
pub(crate) use hold::is_held;
pub use restore::Restoring;
pub use rows::RestoredRows;
pub use runs::{BackupRun, BackupSize};
pub use snapshot::Snapshot;
pub use tables::{Cell, SnapshotTable};
