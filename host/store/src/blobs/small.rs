//! Blobs of few bytes, which lie in the database: named so that whoever knew one can read it again without holding its bytes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::handle::Blob;
use super::repair::note_damage;
use super::row::{damaged, is_sound};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// The name of a stored blob whose bytes lie in the database. It is no right to read them: who keeps one must know that the repository
/// still holds the blob.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SmallBlob(i64);

impl Blob {
    /// Its name, if its bytes lie in the database; none of new ones, of others, and of a part of one.
    #[must_use]
    pub fn small(&self) -> Option<SmallBlob> {
        self.stored_row().filter(|_| self.is_in_memory()).map(SmallBlob)
    }
}

impl Store {
    /// The bytes of a small blob: one statement, by its row alone. None where it was removed since, or its bytes lie elsewhere by
    /// now. `Corrupt` when they are damaged.
    #[boxed]
    pub async fn small_blob(&self, SmallBlob(id): SmallBlob) -> Result<Option<Bytes>, StoreError> {
        // What is kept without its bytes is read again and again: no more of the row than that takes.
        let sql = "SELECT b.size, b.checked, b.data FROM blobs b WHERE b.id = $1";
        let Some(row) = self.inner.db.find(sql, values![id]).await? else { return Ok(None) };
        let mut columns = row.columns();
        let (size, check) = (columns.unsigned("size")?, columns.int("checked")?);
        let Some(bytes) = row.into_bytes("data")? else { return Ok(None) };
        if !is_sound(&bytes, size, check) {
            note_damage(&self.inner.db, id, "").await;
            return Err(damaged(format_args!("{id}")));
        }
        Ok(Some(bytes))
    }
}
