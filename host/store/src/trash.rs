//! The trash: deleted versions in their original state, until they are removed permanently.
//!
//! A deletion fills its entry in its own transactions (`writer/trash.rs`). An undo removes the
//! entry in the transaction that restores it. A killed server therefore leaves the version either
//! deleted or restored. The trash keeps its blobs from collection, and no usage includes them.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;

use crate::accounts::AuditEvent;
use crate::blobs::row::BLOB_COLUMNS;
use crate::boxed;
use crate::catalog::{CatalogChange, Version, VersionFile};
use crate::db::{Row, Value, signed, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::{RepositoryId, TrashId, new_id};
use crate::records::{Change, Commit, Expectation, Outcome};
use crate::store::Store;
use crate::writer::sql::named_by;

/// Age at which the entry of a deletion that changed nothing is removed.
const NOTHING_AFTER_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum attempts of an undo when other commits come first.
const TRIES: u32 = 8;
/// Records of an undo in one commit, and their maximum bytes. One record may have 1 MiB.
const PIECE: i64 = 2000;
const PIECE_BYTES: usize = 8 << 20;
/// Blobs examined after one statement.
const BLOBS_AT_ONCE: i64 = 100;
/// Entries removed permanently in one transaction.
const GONE_AT_ONCE: i64 = 20;

const ENTRIES: &str = "SELECT t.id, t.name, t.version, t.deleted_at, t.deleted_by, t.gone_at, \
    (SELECT CAST(COALESCE(SUM(f.size), t.unshown_bytes, 0) AS BIGINT) FROM (SELECT path, MAX(size) AS size FROM trash_files \
     WHERE entry = t.id GROUP BY path) f) AS bytes \
    FROM trash t WHERE t.repository = $1 AND t.gone_at > $2 AND (EXISTS (SELECT 1 FROM trash_versions v WHERE v.entry = t.id) \
    OR t.unshown_bytes IS NOT NULL AND EXISTS (SELECT 1 FROM trash_records r WHERE r.entry = t.id))";

/// Entry of an unfinished deletion: it contains no version yet, or the version is still in the
/// catalog.
const OPEN: &str = "SELECT t.id FROM trash t WHERE t.repository = $1 AND t.name = $2 AND t.version = $3 AND t.open = 1 \
    AND (NOT EXISTS (SELECT 1 FROM trash_versions v WHERE v.entry = t.id) \
    OR EXISTS (SELECT 1 FROM trash_versions v JOIN versions s ON s.repository = t.repository AND s.name = v.name \
     AND s.version = v.version AND s.shown_at = v.shown_at WHERE v.entry = t.id)) ORDER BY t.id LIMIT 1";

/// A deleted version that can be restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrashEntry {
    pub id: TrashId,
    pub name: String,
    pub version: String,
    /// Time of the deletion, in ms since 1970.
    pub deleted_at: i64,
    pub deleted_by: String,
    /// Time of the permanent removal, in ms since 1970.
    pub gone_at: i64,
    /// Total bytes of its files, each path once.
    pub bytes: u64,
}

/// Outcome of an undo. An exceeded quota is an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restored {
    Done,
    /// A version of the same name was published meanwhile.
    Exists,
    /// The entry does not exist any more.
    Gone,
}

/// A record as it was before the deletion.
struct TrashedRecord {
    key: String,
    value: Option<Bytes>,
    blobs: Vec<Sha256>,
    /// Digest of the value that the deletion wrote; `None` if it removed the record or did not
    /// change it.
    after: Option<Sha256>,
}

impl Store {
    /// Creates an entry for a deletion by `deleted_by`, to be retained for so many days. If an
    /// interrupted deletion of the same version has an entry, that one is used.
    #[boxed]
    pub async fn begin_trash(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
        deleted_by: &str,
        days: u64,
    ) -> Result<TrashId, StoreError> {
        let (id, now) = (new_id(), self.now_ms());
        let gone_at = now.saturating_add(signed(days).saturating_mul(DAY_MS));
        if let Some(row) = self.inner.db.fetch_one(OPEN, values![repository.0, name, version]).await? {
            let open = row.columns().int("id")?;
            let sql =
                "UPDATE trash SET deleted_at = $2, deleted_by = $3, gone_at = $4 WHERE id = $1 AND open = 1";
            if self.execute_for(repository, sql, values![open, now, deleted_by, gone_at]).await? == 1 {
                return Ok(TrashId(open));
            }
        }
        let sql = "INSERT INTO trash (id, repository, name, version, deleted_at, deleted_by, gone_at, open) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, 1)";
        let values = values![id, repository.0, name, version, now, deleted_by, gone_at];
        self.execute_for(repository, sql, values).await?;
        Ok(TrashId(id))
    }

    /// Creates entries for a policy's deletions in one transaction. Each has a package, a version,
    /// and its bytes if it was never in the catalog. Entries of interrupted deletions are used
    /// again.
    #[boxed]
    pub async fn begin_trash_of(
        &self,
        repository: RepositoryId,
        versions: &[(&str, &str, Option<u64>)],
        deleted_by: &str,
        days: u64,
    ) -> Result<Vec<TrashId>, StoreError> {
        let now = self.now_ms();
        let gone_at = now.saturating_add(signed(days).saturating_mul(DAY_MS));
        // This runs before the transaction, so that publishes do not wait for it. No other process
        // creates one of these entries meanwhile.
        let sql = "SELECT name, version FROM trash WHERE open = 1 AND repository = $1";
        let mut interrupted = BTreeSet::new();
        for row in &self.inner.db.fetch(sql, values![repository.0]).await? {
            let mut columns = row.columns();
            interrupted.insert((columns.text("name")?, columns.text("version")?));
        }
        let mut transaction = self.inner.db.begin().await?;
        let (mut entries, mut rows) = (Vec::new(), Vec::new());
        for (name, version, unshown) in versions {
            let of = || values![repository.0, *name, *version];
            let open = match interrupted.contains(&((*name).to_owned(), (*version).to_owned())) {
                true => transaction.fetch_one(OPEN, of()).await?,
                false => None,
            };
            if let Some(row) = open {
                let open = row.columns().int("id")?;
                let sql = "UPDATE trash SET deleted_at = $2, deleted_by = $3, gone_at = $4, unshown_bytes = $5 WHERE id = $1";
                let values = values![open, now, deleted_by, gone_at, unshown.map(signed)];
                transaction.execute(sql, values).await?;
                entries.push(TrashId(open));
                continue;
            }
            let id = new_id();
            entries.push(TrashId(id));
            rows.push([
                Value::from(id),
                Value::from(repository.0),
                Value::from(*name),
                Value::from(*version),
                Value::from(now),
                Value::from(deleted_by),
                Value::from(gone_at),
                Value::Int(unshown.map(signed)),
                Value::from(1),
            ]);
        }
        let insert = "INSERT INTO trash (id, repository, name, version, deleted_at, deleted_by, gone_at, unshown_bytes, open) VALUES ";
        transaction.execute_rows(insert, rows, "").await?;
        transaction.commit().await?;
        Ok(entries)
    }

    /// Completes several entries, as [`end_trash`](Store::end_trash) does for one.
    #[boxed]
    pub async fn end_trash_of(&self, entries: &[TrashId]) -> Result<(), StoreError> {
        let ids = || entries.iter().map(|entry| [Value::from(entry.0)]).collect::<Vec<_>>();
        let mut transaction = self.inner.db.begin().await?;
        let empty = ") AND NOT EXISTS (SELECT 1 FROM trash_versions v WHERE v.entry = trash.id) \
                     AND (unshown_bytes IS NULL OR NOT EXISTS (SELECT 1 FROM trash_records r WHERE r.entry = trash.id))";
        transaction.execute_rows("DELETE FROM trash WHERE id IN (VALUES ", ids(), empty).await?;
        transaction.execute_rows("UPDATE trash SET open = 0 WHERE id IN (VALUES ", ids(), ")").await?;
        transaction.commit().await
    }

    /// Completes the entry of an interrupted deletion that had finished: its version is not in the
    /// catalog any more.
    #[boxed]
    pub async fn end_interrupted_trash(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE trash SET open = 0 WHERE repository = $1 AND name = $2 AND version = $3 AND open = 1 \
                   AND EXISTS (SELECT 1 FROM trash_records r WHERE r.entry = trash.id)";
        self.inner.db.execute(sql, values![repository.0, name, version]).await.map(drop)
    }

    /// Completes an entry. An entry without a version is deleted, unless it was created for a
    /// version that was never in the catalog.
    #[boxed]
    pub async fn end_trash(&self, entry: TrashId) -> Result<(), StoreError> {
        let empty = "DELETE FROM trash WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM trash_versions v WHERE v.entry = trash.id) \
                     AND (unshown_bytes IS NULL OR NOT EXISTS (SELECT 1 FROM trash_records r WHERE r.entry = trash.id))";
        self.inner.db.execute(empty, values![entry.0]).await?;
        self.inner.db.execute("UPDATE trash SET open = 0 WHERE id = $1", values![entry.0]).await.map(drop)
    }

    /// Restorable versions of a repository, the latest deletion first, before the entry `before`,
    /// at most `limit`.
    #[boxed]
    pub async fn trash(
        &self,
        repository: RepositoryId,
        before: Option<TrashId>,
        limit: u32,
    ) -> Result<Vec<TrashEntry>, StoreError> {
        let sql = format!("{ENTRIES} AND t.id < $3 ORDER BY t.id DESC LIMIT $4");
        let before = before.map_or(i64::MAX, |before| before.0);
        let values = values![repository.0, self.now_ms(), before, i64::from(limit)];
        self.inner.db.fetch(sql, values).await?.iter().map(entry).collect()
    }

    /// One entry of the trash.
    #[boxed]
    pub async fn trash_entry(
        &self,
        repository: RepositoryId,
        id: TrashId,
    ) -> Result<Option<TrashEntry>, StoreError> {
        let sql = format!("{ENTRIES} AND t.id = $3");
        let row = self.inner.db.fetch_one(sql, values![repository.0, self.now_ms(), id.0]).await?;
        row.as_ref().map(entry).transpose()
    }

    /// Restores every record of a deleted version. A record that several versions share stays
    /// unchanged if it was changed since.
    ///
    /// `QuotaExceeded` if it does not fit. `Corrupt` if bytes are missing or known to be damaged;
    /// uploading them again to any repository makes the restore possible. `Unavailable` if the
    /// result is unknown, or if other commits changed the same records on each attempt.
    #[boxed]
    pub async fn restore_trash(
        &self,
        repository: RepositoryId,
        entry: TrashId,
        audit: &AuditEvent,
    ) -> Result<Restored, StoreError> {
        let _turn = self.inner.undos.acquire().await;
        for _ in 0..TRIES {
            if self.trash_entry(repository, entry).await?.is_none() {
                return Ok(Restored::Gone);
            }
            let versions = self.versions_in_trash(entry).await?;
            for version in &versions {
                let sql =
                    "SELECT 1 AS one FROM versions WHERE repository = $1 AND name = $2 AND version = $3";
                let values = values![repository.0, version.name.as_str(), version.version.as_str()];
                if self.inner.db.fetch_one(sql, values).await?.is_some() {
                    return Ok(Restored::Exists);
                }
            }
            self.check_trashed_bytes(repository, entry).await?;
            if self.put_back(repository, entry, versions, audit).await? {
                return Ok(Restored::Done);
            }
        }
        Err(StoreError::database("other requests keep changing the content that is being restored"))
    }

    /// Checks that the bytes of an entry exist. `Corrupt` if some are missing or known to be
    /// damaged.
    async fn check_trashed_bytes(&self, repository: RepositoryId, entry: TrashId) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {BLOB_COLUMNS} FROM trash_blobs t JOIN blobs b ON b.id = t.blob \
             WHERE t.entry = $1 AND b.id > $2 ORDER BY b.id LIMIT $3"
        );
        let mut last = i64::MIN;
        loop {
            let rows = self.inner.db.fetch(sql.clone(), values![entry.0, last, BLOBS_AT_ONCE]).await?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in &rows {
                let row = self.read_row(row).await?;
                last = row.id;
                let sha256 = row.sha256;
                if !self.open_blob(row, repository).await?.is_there().await? {
                    return Err(StoreError::Corrupt(format!(
                        "the blob {sha256} in the trash is missing or damaged"
                    )));
                }
            }
        }
    }

    /// Removes expired entries, and entries of deletions that changed nothing; returns how many.
    /// Garbage collection removes their blobs.
    #[boxed]
    pub async fn empty_trash(&self) -> Result<u64, StoreError> {
        // Checks the row itself too: PostgreSQL evaluates that condition again after it has waited
        // for a lock.
        let sql = "DELETE FROM trash WHERE gone_at <= $1 AND id IN \
                   (SELECT id FROM trash WHERE gone_at <= $1 ORDER BY gone_at LIMIT $2)";
        let gone = self.inner.db.delete_in_pieces(sql, self.now_ms(), GONE_AT_ONCE).await?;
        let nothing = "DELETE FROM trash WHERE open = 1 AND deleted_at <= $1 \
                       AND NOT EXISTS (SELECT 1 FROM trash_records r WHERE r.entry = trash.id)";
        let before = self.now_ms().saturating_sub(NOTHING_AFTER_MS);
        self.inner.db.execute_maintenance(nothing, values![before]).await?;
        Ok(gone)
    }

    /// Restores the records in as many commits as needed, and the catalog entries in the last one.
    /// Returns false if another commit came first.
    async fn put_back(
        &self,
        repository: RepositoryId,
        entry: TrashId,
        versions: Vec<Version>,
        audit: &AuditEvent,
    ) -> Result<bool, StoreError> {
        let mut after = String::new();
        let catalog: Vec<CatalogChange> = versions.into_iter().map(CatalogChange::Show).collect();
        loop {
            let Some((records, more)) = self.records_in_trash(entry, &after).await? else { return Ok(false) };
            if more {
                self.hold_trash(repository, entry).await?;
            }
            let mut commit = Commit::default();
            for record in records {
                after.clone_from(&record.key);
                let now = self.get(repository, &record.key).await?;
                let now = now.map(|now| (now.revision, now.value));
                commit.changes.extend(restoring_change(record, now));
            }
            // If nothing is left to change, another undo may have restored the version and removed
            // the entry.
            if commit.changes.is_empty() && self.trash_entry(repository, entry).await?.is_none() {
                return Ok(false);
            }
            if !more {
                commit.catalog.clone_from(&catalog);
                (commit.audit, commit.publishes, commit.undoes) = (Some(audit.clone()), true, Some(entry));
            }
            match self.commit(repository, commit).await? {
                Outcome::Applied(_) if more => {}
                Outcome::Applied(_) => return Ok(true),
                Outcome::Stale(_) => return Ok(false),
                // In a piece before the last one, the entry may have expired before its blobs were
                // pinned.
                Outcome::UnknownBlobs(_) if self.trash_entry(repository, entry).await?.is_none() => {
                    return Ok(false);
                }
                Outcome::UnknownBlobs(_) => {
                    return Err(StoreError::Corrupt(format!("a blob of the trash entry {entry} is missing")));
                }
            }
        }
    }

    /// Some records of an entry after a key, and true if the entry has more. `None` if the entry
    /// disappeared meanwhile, because of another undo or its expiry.
    async fn records_in_trash(
        &self,
        entry: TrashId,
        after: &str,
    ) -> Result<Option<(Vec<TrashedRecord>, bool)>, StoreError> {
        let sql = "SELECT key, value, blobs, after FROM trash_records WHERE entry = $1 AND key > $2 ORDER BY key LIMIT $3";
        let rows = self.inner.db.fetch(sql, values![entry.0, after, PIECE + 1]).await?;
        let sql = "SELECT b.id, b.sha256 FROM trash_blobs t JOIN blobs b ON b.id = t.blob WHERE t.entry = $1";
        let mut digests = HashMap::new();
        for row in &self.inner.db.fetch(sql, values![entry.0]).await? {
            let mut columns = row.columns();
            digests.insert(columns.int("id")?, Sha256(columns.hash("sha256")?));
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        for row in &rows {
            if records.len() as i64 == PIECE || bytes > PIECE_BYTES {
                return Ok(Some((records, true)));
            }
            let mut columns = row.columns();
            let (key, value) = (columns.text("key")?, columns.opt_vec("value")?.map(Bytes::from));
            let blobs = named_by(columns.opt_text("blobs")?.as_deref())?;
            let blobs: Option<Vec<Sha256>> = blobs.iter().map(|id| digests.get(id).copied()).collect();
            let Some(blobs) = blobs else { return Ok(None) };
            let after = columns.opt_vec("after")?.and_then(|after| after.try_into().ok()).map(Sha256);
            bytes += value.as_ref().map_or(0, Bytes::len);
            records.push(TrashedRecord { key, value, blobs, after });
        }
        Ok(Some((records, false)))
    }

    /// Pins the blobs of an entry, so that commits before the last one of an undo may name them.
    /// The last commit finds the blobs in the trash.
    async fn hold_trash(&self, repository: RepositoryId, entry: TrashId) -> Result<(), StoreError> {
        let sql = "INSERT INTO leases (blob, repository, until) SELECT t.blob, e.repository, $3 FROM trash_blobs t \
                   JOIN trash e ON e.id = t.entry WHERE t.entry = $1 AND e.repository = $2 \
                   ON CONFLICT (blob, repository) DO UPDATE SET until = excluded.until";
        let until = self.pin_end(self.now_ms());
        self.execute_for(repository, sql, values![entry.0, repository.0, until]).await.map(drop)
    }

    async fn versions_in_trash(&self, entry: TrashId) -> Result<Vec<Version>, StoreError> {
        let mut files: HashMap<(String, String), Vec<VersionFile>> = HashMap::new();
        let sql = "SELECT name, version, path, digest, size FROM trash_files WHERE entry = $1 ORDER BY name, version, path";
        for row in &self.inner.db.fetch(sql, values![entry.0]).await? {
            let name = row.columns().text("name")?;
            let (version, file) = crate::versions::file(row)?;
            files.entry((name, version)).or_default().push(file);
        }
        let sql = "SELECT name, version, published, summary, properties, state FROM trash_versions \
                   WHERE entry = $1 ORDER BY updated_at, name, version";
        let mut versions = Vec::new();
        for row in &self.inner.db.fetch(sql, values![entry.0]).await? {
            let mut columns = row.columns();
            let (name, version) = (columns.text("name")?, columns.text("version")?);
            let properties = serde_json::from_str(&columns.text("properties")?)
                .map_err(|problem| StoreError::Corrupt(format!("properties in the trash: {problem}")))?;
            versions.push(Version {
                files: files.remove(&(name.clone(), version.clone())).unwrap_or_default(),
                name,
                version,
                published: columns.opt_int("published")?.and_then(|at| u64::try_from(at).ok()),
                summary: columns.text("summary")?,
                properties,
                state: columns.text("state")?,
            });
        }
        Ok(versions)
    }
}

/// Change that restores a record; `None` if the record has its old value already, or if another
/// commit has changed it since the deletion.
fn restoring_change(record: TrashedRecord, now: Option<(u64, Bytes)>) -> Option<Change> {
    let TrashedRecord { key, value, blobs, after } = record;
    let put = |key, value, expect| Some(Change::Put { key, value, expect, blobs });
    match (now, value) {
        (Some((_, now)), Some(before)) if now == before => None,
        (Some((revision, now)), before) if after == Some(Sha256::of(&now)) => match before {
            Some(before) => put(key, before, Expectation::Revision(revision)),
            None => Some(Change::Remove { key, expect: Expectation::Revision(revision) }),
        },
        (None, Some(before)) => put(key, before, Expectation::Absent),
        _ => None,
    }
}

fn entry(row: &Row) -> Result<TrashEntry, StoreError> {
    let mut columns = row.columns();
    Ok(TrashEntry {
        id: TrashId(columns.int("id")?),
        name: columns.text("name")?,
        version: columns.text("version")?,
        deleted_at: columns.int("deleted_at")?,
        deleted_by: columns.text("deleted_by")?,
        gone_at: columns.int("gone_at")?,
        bytes: columns.unsigned("bytes")?,
    })
}
