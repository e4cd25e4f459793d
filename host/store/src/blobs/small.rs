//! Blobs stored inline in the database. A `SmallBlob` names one, so that it can be read again later
//! without keeping its bytes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::handle::Blob;
use super::repair::record_damage;
use super::row::{damaged, is_sound};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// Reference to a stored blob whose bytes are in the database. It does not grant access: its holder
/// must make sure that the repository still holds the blob.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SmallBlob(i64);

impl Blob {
    /// Returns a reference if the bytes are in the database; `None` for new blobs, other blobs, and
    /// parts of a blob.
    #[must_use]
    pub fn small(&self) -> Option<SmallBlob> {
        self.stored_row().filter(|_| self.is_in_memory()).map(SmallBlob)
    }
}

impl Store {
    /// Reads the bytes of a small blob in one statement. `None` if it was removed, or if its bytes
    /// were moved elsewhere. `Corrupt` if they are damaged.
    #[boxed]
    pub async fn small_blob(&self, SmallBlob(id): SmallBlob) -> Result<Option<Bytes>, StoreError> {
        // Cached references are read again and again, so this selects only the columns that it
        // needs.
        let sql = "SELECT b.size, b.checked, b.data FROM blobs b WHERE b.id = $1";
        let Some(row) = self.inner.db.find(sql, values![id]).await? else { return Ok(None) };
        let mut columns = row.columns();
        let (size, check) = (columns.unsigned("size")?, columns.int("checked")?);
        let Some(bytes) = row.into_bytes("data")? else { return Ok(None) };
        if !is_sound(&bytes, size, check) {
            record_damage(&self.inner.db, id, "").await;
            return Err(damaged(format_args!("{id}")));
        }
        Ok(Some(bytes))
    }
}
