//! Reading records.

use super::range::Range;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Entry, MAX_SCAN, MAX_SCAN_BYTES};
use crate::store::Store;

pub(crate) const GET: &str = "SELECT key, value, revision FROM records WHERE repository = $1 AND key = $2";
/// Records in their order, as many as are wanted; and only so many as make up `$5` bytes, summed up before any value is read. Each with the
/// repository's revision.
pub(crate) const SCAN: [&str; 2] = [
    "SELECT key, value, revision, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM records \
    WHERE repository = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4",
    "SELECT r.key, r.value, r.revision, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM (\
    SELECT key, SUM(size) OVER (ORDER BY key) AS total FROM (\
        SELECT key, length(value) AS size FROM records WHERE repository = $1 AND key >= $2 AND key < $3 \
        ORDER BY key LIMIT $4) AS sizes) AS sums \
    JOIN records r ON r.repository = $1 AND r.key = sums.key WHERE sums.total <= $5 ORDER BY r.key",
];
/// The column of the value in the first of them.
const VALUE: usize = 1;

/// What one statement read of a repository.
pub(super) struct Dated<T> {
    pub(super) found: Vec<T>,
    /// The revision of which it is. None where nothing was found.
    pub(super) at: Option<u64>,
}

impl<T> Dated<T> {
    pub(super) fn nothing() -> Dated<T> {
        Dated { found: Vec::new(), at: None }
    }

    /// Of rows with a column `at`.
    pub(super) fn of(
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Dated<T>, StoreError> {
        let at = rows.first().map(|row| row.columns().unsigned("at")).transpose()?;
        Ok(Dated { found: rows.iter().map(read).collect::<Result<_, _>>()?, at })
    }
}

impl Store {
    /// The record, or none.
    #[boxed]
    pub async fn get(&self, repository: RepositoryId, key: &str) -> Result<Option<Entry>, StoreError> {
        if key.contains('\0') {
            return Ok(None);
        }
        let row = self.inner.db.find(GET, values![repository.0, key]).await?;
        row.map(|row| entry(&row)).transpose()
    }

    /// Records whose key begins with `prefix`, in the order of the keys' bytes, after the key `after` (which need not exist),
    /// at most `limit`, 1,000 and 1 MiB of them. Only an empty list is the end.
    #[boxed]
    pub async fn scan(
        &self,
        repository: RepositoryId,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        Ok(self.dated_scan(repository, prefix, after, limit).await?.found)
    }

    pub(super) async fn dated_scan(
        &self,
        repository: RepositoryId,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Dated<Entry>, StoreError> {
        let Some(range) = Range::new(prefix, after) else { return Ok(Dated::nothing()) };
        let limit = i64::from(limit.min(MAX_SCAN));
        let values = values![repository.0, range.from, range.end, limit];
        let rows = self.inner.db.fetch_within(SCAN, values, VALUE, MAX_SCAN_BYTES).await?;
        Dated::of(&rows, entry)
    }
}

pub(super) fn entry(row: &Row) -> Result<Entry, StoreError> {
    let mut columns = row.columns();
    Ok(Entry {
        key: columns.text("key")?,
        value: columns.bytes("value")?,
        revision: columns.unsigned("revision")?,
    })
}
