//! Backup and restore of the store. A backup has all rows of one moment, independent of the kind of
//! database, and the bytes of the blobs that they name. A restore writes both into an empty
//! location.
//!
//! - [`Snapshot`]: the rows of one moment. [`tables`] lists the included and excluded tables.
//! - [`BlobHold`]: prevents the collection of blobs from before that moment until the last copy.
//! - [`Restoring`]: a location that is being filled. No server opens it before it is complete.

mod blobs;
mod hold;
mod location_rows;
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
