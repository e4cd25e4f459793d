//! Backups of a store in a folder or a bucket: taken beside a running server, verified, listed, pruned, and restored into either
//! kind of database and of storage.
//!
//! # Layout of a place of backups
//!
//! ```text
//! packhouse-backups.json          that it is one, and how its files are encrypted
//! content/<2 hex>/<sha256>        bytes of blobs, each once for all backups
//! backups/<id>/<table>.rows       rows of a table: JSON arrays, one a line, compressed with zstd
//! backups/<id>/blobs.list         `<sha256> <size>` of each blob that the backup names, compressed with zstd
//! backups/<id>/sealing.key        the key of sealed secrets, unless it was left out
//! backups/<id>/under-way          while it is being taken
//! backups/<id>/proof.json         a MAC and a signature of the manifest and of the place's header
//! backups/<id>/manifest.json      written last: without it there is no backup
//! ```
//!
//! Rows, blobs and the key are encrypted with age where that is asked for; the manifest and the list are not, so that backups are
//! listed and pruned without a key. Nothing but `under-way` is ever changed.
//!
//! # Modules
//!
//! `place` (a folder or a bucket), `keys` and `vault` (what is encrypted with what), `proof` (who made it), `lines` (rows as text), `manifest` and
//! `catalog` (which backups there are), then what is done with them: `take`, `verify`, `prune`, `restore`.

mod catalog;
mod keys;
mod lines;
mod manifest;
mod place;
mod proof;
mod prune;
mod restore;
mod take;
mod vault;
mod verify;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use catalog::{Found, State, list};
pub use keys::KeyFiles;
pub use manifest::{Manifest, SealingKey, StoredTable};
pub use place::Place;
pub use proof::{Demand, SigningKey};
pub use prune::{Keep, Pruned, prune};
pub use restore::{Restored, restore};
pub use take::take;
pub use vault::Vault;
pub use verify::{Verified, verify};
