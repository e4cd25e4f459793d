//! A blob as the database knows it.

use std::fmt;

use bytes::Bytes;

use super::check::Check;
use crate::db::Row;
use crate::digest::{Digest, Sha256};
use crate::error::StoreError;

/// A row of the table `blobs`: what a settled blob hands to the writer, and what is read back.
#[derive(Clone, Debug)]
pub(crate) struct BlobRow {
    /// From [`crate::ids::new_id`].
    pub(crate) id: i64,
    /// Unique among blobs.
    pub(crate) sha256: Sha256,
    /// How many bytes.
    pub(crate) size: u64,
    /// xxh3 of the bytes: cheap to check at each whole reading.
    pub(crate) check: i64,
    /// Where the bytes are.
    pub(crate) place: Place,
    /// The bytes are newly durable at this place: insert it unless there is a row of the same SHA-256. Otherwise it was read from
    /// the database and must still be there; inserting it would name bytes that are gone.
    pub(crate) fresh: bool,
    /// Digests besides SHA-256 that are known.
    pub(crate) digests: Vec<Digest>,
    /// Whether a read found the stored bytes missing or damaged, and nobody has sent them again
    /// since.
    pub(crate) damaged: bool,
    /// Of a fresh one: the row that has its SHA-256 already, as it was when its bytes were
    /// examined.
    pub(crate) examined: Option<Examined>,
}

/// A row whose bytes were examined because the same bytes were sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Examined {
    pub(crate) id: i64,
    /// The key of its bytes then; none where they lay in the row.
    pub(crate) place: Option<String>,
    pub(crate) condition: Condition,
}

/// The condition of bytes that were sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// They are what was stored, as far as they were read.
    Sound,
    /// They are missing, or are not what was stored.
    Damaged,
}

/// Where a blob's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the row itself.
    Inline(Bytes),
    /// In the storage of blobs, under this key.
    Stored(String),
}

/// The columns of `blobs` as `b` that [`read_row`] reads.
pub(crate) const BLOB_COLUMNS: &str =
    "b.id, b.sha256, b.size, b.checked, b.place, b.data, b.digests, b.damaged_at";

/// A blob from a row with [`BLOB_COLUMNS`]. `Corrupt` when it makes no sense, or when bytes in the row are not what was stored.
pub(crate) fn read_row(row: &Row) -> Result<BlobRow, StoreError> {
    let mut columns = row.columns();
    let (id, sha256, size) = (columns.int("id")?, Sha256(columns.hash("sha256")?), columns.unsigned("size")?);
    let (check, key, data) = (columns.int("checked")?, columns.opt_text("place")?, columns.opt_vec("data")?);
    let digests = read_digests(&columns.text("digests")?)?;
    let found_damaged = columns.opt_int("damaged_at")?.is_some();
    let place = match (key, data) {
        (Some(key), None) => Place::Stored(key),
        (None, Some(data)) if is_sound(&data, size, check) => Place::Inline(data.into()),
        _ => return Err(damaged(format_args!("{id} ({sha256})"))),
    };
    Ok(BlobRow {
        id,
        sha256,
        size,
        check,
        place,
        fresh: false,
        digests,
        damaged: found_damaged,
        examined: None,
    })
}

/// Whether bytes in a row are what was stored: so many, with this check value.
pub(super) fn is_sound(bytes: &[u8], size: u64, check: i64) -> bool {
    bytes.len() as u64 == size && Check::of(bytes).cast_signed() == check
}

/// The error of a blob in the database that is not what was stored, once it is logged.
pub(super) fn damaged(blob: fmt::Arguments<'_>) -> StoreError {
    tracing::error!(%blob, "the bytes of a blob in the database are not what was stored");
    StoreError::Corrupt(format!("blob {blob} in the database"))
}

/// `md5:<hex> sha1:<hex>`.
pub(crate) fn write_digests(digests: &[Digest]) -> String {
    digests.iter().map(Digest::to_string).collect::<Vec<_>>().join(" ")
}

fn read_digests(text: &str) -> Result<Vec<Digest>, StoreError> {
    text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_: StoreError| {
        StoreError::Corrupt("the digests of a blob in the database make no sense".to_owned())
    })
}
