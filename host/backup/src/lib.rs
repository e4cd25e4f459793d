//! Backups of a store in a folder or a bucket. A backup can be taken while a server runs. The crate
//! also verifies, lists and prunes backups, and restores them into either kind of database and of
//! storage.
//!
//! # Layout of a backup location
//!
//! ```text
//! packhouse-backups.json      marks a backup location and states its encryption
//! content/<2 hex>/<sha256>    bytes of blobs, each once for all backups
//! backups/<id>/<table>.rows   rows of a table: JSON arrays, one a line, compressed with zstd
//! backups/<id>/blobs.list     `<sha256> <size>` of each blob of the backup, compressed with zstd
//! backups/<id>/sealing.key    the sealing key, unless it was left out
//! backups/<id>/under-way      heartbeat while the backup is being taken
//! backups/<id>/proof.json     MAC and signature of the manifest and of the location's header
//! backups/<id>/manifest.json  written last: without it there is no backup
//! ```
//!
//! Rows, blobs and the key are encrypted with age on request. The manifest and the list are not, so
//! that listing and pruning need no key. No file except `under-way` ever changes.
//!
//! # Modules
//!
//! - `location`: a folder or a bucket
//! - `keys`, `vault`: encryption
//! - `proof`: origin of a backup
//! - `lines`: rows as text
//! - `manifest`, `catalog`: contents of a backup, and the list of backups
//! - `take`, `verify`, `prune`, `restore`: the operations

mod catalog;
mod keys;
mod lines;
mod location;
mod manifest;
mod proof;
mod prune;
mod restore;
mod take;
mod vault;
mod verify;

// Boxes the future, so that its body is compiled here and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use catalog::{BackupEntry, BackupState, list};
pub use keys::KeyFiles;
pub use location::BackupLocation;
pub use manifest::{Manifest, SealingKey, StoredTable};
pub use proof::{Demand, SigningKey};
pub use prune::{Keep, Pruned, prune};
pub use restore::{Restored, restore};
pub use take::take;
pub use vault::Vault;
pub use verify::{Verified, verify};
