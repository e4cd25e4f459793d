use super::range::Range;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Entry, MAX_SCAN, MAX_SCAN_BYTES};
use crate::store::Store;

pub(crate) const GET: &str = "SELECT key, value, revision FROM records WHERE repository = $1 AND key = $2";
/// Records in key order up to the limit, and only as many as fit into `$5` bytes. The sizes are
/// added up before any value is read. Each row has the repository's revision.
pub(crate) const SCAN: [&str; 2] = [
    "SELECT key, value, revision, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM records \
    WHERE repository = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4",
    "SELECT r.key, r.value, r.revision, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM (\
    SELECT key, SUM(size) OVER (ORDER BY key) AS total FROM (\
        SELECT key, length(value) AS size FROM records WHERE repository = $1 AND key >= $2 AND key < $3 \
        ORDER BY key LIMIT $4) AS sizes) AS sums \
    JOIN records r ON r.repository = $1 AND r.key = sums.key WHERE sums.total <= $5 ORDER BY r.key",
];
/// Index of the value's column in the first statement.
const VALUE: usize = 1;

/// Result of one statement, with the repository's revision.
pub(super) struct Dated<T> {
    pub(super) found: Vec<T>,
    /// Revision of the result; `None` if nothing was found.
    pub(super) at: Option<u64>,
}

impl<T> Dated<T> {
    pub(super) fn nothing() -> Dated<T> {
        Dated { found: Vec::new(), at: None }
    }

    /// Result of rows that have a column `at`.
    pub(super) fn of(
        rows: &[Row],
        read: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Dated<T>, StoreError> {
        let at = rows.first().map(|row| row.columns().unsigned("at")).transpose()?;
        Ok(Dated { found: rows.iter().map(read).collect::<Result<_, _>>()?, at })
    }
}

impl Store {
    #[boxed]
    pub async fn get(&self, repository: RepositoryId, key: &str) -> Result<Option<Entry>, StoreError> {
        if key.contains('\0') {
            return Ok(None);
        }
        let row = self.inner.db.find(GET, values![repository.0, key]).await?;
        row.map(|row| entry(&row)).transpose()
    }

    /// Records whose keys begin with `prefix` and come after `after` (which need not exist), in
    /// byte order. At most `limit`, 1,000 and 1 MiB of them. Only an empty list means that no more
    /// records follow.
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
