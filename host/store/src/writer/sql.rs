//! Statements of a batch, each for all its rows at once.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::job::Waiting;
use super::quota::{self, Quotas};
use crate::accounts::Revisions;
use crate::blobs::row::{BlobLocation, BlobRow, Examined};
use crate::db::{MultiRow, ResultColumn as Column, Row, Transaction, Value, found, signed};
use crate::digest::{Digest, Sha256};
use crate::error::StoreError;
use crate::ids::{RepositoryId, TrashId};

pub(crate) const REPOSITORIES: [&str; 2] = [
    "SELECT id, revision, organization, CASE WHEN settings LIKE '%\"quota_bytes\"%' THEN settings END AS settings, \
     (SELECT o.quota_bytes FROM organizations o WHERE o.id = repositories.organization) AS organization_quota, \
     CAST(CASE WHEN EXISTS (SELECT 1 FROM webhooks h WHERE h.organization = repositories.organization AND h.deleted_at IS NULL) THEN 1 ELSE 0 END AS BIGINT) \
     AS hooked \
     FROM repositories WHERE id IN (VALUES ",
    ") AND deleted_at IS NULL",
];
const REPOSITORIES_FIND: [Column; 6] = found![
    "id": BIGINT, "revision": BIGINT, "organization": BIGINT, "settings": TEXT, "organization_quota": BIGINT, "hooked": BIGINT
];
const LOCK: &str = "SELECT id, revision FROM repositories WHERE id IN (VALUES ";
const LOCK_FINDS: [Column; 2] = found!["id": BIGINT, "revision": BIGINT];
pub(crate) const ENTRIES: [&str; 2] =
    ["SELECT repository, key, revision, blobs FROM records WHERE (repository, key) IN (VALUES ", ")"];
const ENTRIES_FIND: [Column; 4] =
    found!["repository": BIGINT, "key": TEXT, "revision": BIGINT, "blobs": TEXT];
pub(crate) const BLOBS: [&str; 2] = [
    "WITH requested (repository, sha256, now) AS (VALUES ",
    ") SELECT requested.repository, b.sha256, b.id, b.place, \
        CAST(CASE WHEN EXISTS (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = requested.repository) \
        OR EXISTS (SELECT 1 FROM leases l WHERE l.blob = b.id AND l.repository = requested.repository AND l.until > requested.now) \
        THEN 1 ELSE 0 END AS BIGINT) AS held \
      FROM requested JOIN blobs b ON b.sha256 = requested.sha256",
];
const BLOBS_FIND: [Column; 5] =
    found!["repository": BIGINT, "sha256": BYTEA, "id": BIGINT, "place": TEXT, "held": BIGINT];
/// Replaces the examined bytes of a row by those that were uploaded again.
pub(crate) const REPLACE: [&str; 2] = [
    "WITH sent (id, was, size, checked, place, data) AS (VALUES ",
    ") UPDATE blobs SET size = s.size, checked = s.checked, place = s.place, data = s.data, damaged_at = NULL \
      FROM sent s WHERE blobs.id = s.id AND COALESCE(blobs.place, '') = s.was",
];
pub(crate) const UNNAME: [&str; 2] =
    ["DELETE FROM record_blobs WHERE (blob, repository, key) IN (VALUES ", ")"];
pub(crate) const REMOVE: [&str; 2] = ["DELETE FROM records WHERE (repository, key) IN (VALUES ", ")"];
pub(crate) const REVISIONS: [&str; 2] = [
    "WITH bumped (id, revision) AS (VALUES ",
    ") UPDATE repositories SET revision = (SELECT x.revision FROM bumped x WHERE x.id = repositories.id) \
      WHERE id IN (SELECT id FROM bumped)",
];

/// A stored blob from the view of one repository.
pub(super) struct StoredBlob {
    pub(super) repository: RepositoryId,
    pub(super) sha256: Sha256,
    pub(super) id: i64,
    /// Key of the bytes; `None` if they are in the row.
    pub(super) place: Option<String>,
    /// True if a record or a pin of this repository holds the blob.
    pub(super) held: bool,
}

#[derive(Default)]
pub(super) struct StoredRecord {
    pub(super) revision: u64,
    /// Rows of the blobs that the record names.
    pub(super) blobs: Vec<i64>,
}

/// Stored state of everything that a batch concerns.
pub(super) struct Stored {
    pub(super) revisions: HashMap<RepositoryId, u64>,
    /// Quotas of the repositories that have any.
    pub(super) quotas: Vec<Quotas>,
    /// Repositories of organizations with webhooks.
    pub(super) hooked: BTreeSet<RepositoryId>,
    /// Existing repositories that another process had locked, and for which this read did not wait.
    pub(super) locked: HashSet<RepositoryId>,
    pub(super) entries: HashMap<(RepositoryId, String), StoredRecord>,
    pub(super) blobs: Vec<StoredBlob>,
}

/// Maximum reads of the state. A statement must read again if a repository changed between its
/// start and its lock.
const READINGS: u32 = 4;

/// Locks a repository until the end of the transaction, and waits for the lock. A statement that
/// waits sees the state before its wait, so this statement only locks, and a later one reads.
pub(super) async fn wait_for(
    transaction: &mut Transaction,
    repository: RepositoryId,
) -> Result<(), StoreError> {
    transaction.fetch_each(vec![lock(&BTreeSet::from([repository]), Waiting::Over)]).await?;
    Ok(())
}

/// Reads the state. If other processes may change it, the same statement locks the repositories, so
/// the result is valid until the end of the transaction. Leaves out repositories that another
/// process has locked, unless `waiting` has waited for them.
pub(super) async fn stored(
    transaction: &mut Transaction,
    repositories: &BTreeSet<RepositoryId>,
    keys: &BTreeSet<(RepositoryId, &str)>,
    named: &BTreeSet<(RepositoryId, Sha256)>,
    waiting: Waiting,
) -> Result<Stored, StoreError> {
    let mut readings = 1;
    loop {
        let read = read(transaction, repositories, keys, named, waiting).await?;
        match read.stored()? {
            Some(stored) => return Ok(stored),
            None if readings < READINGS => readings += 1,
            None => return Err(StoreError::database("a repository changed while it was locked")),
        }
    }
}

/// Raw result of a read.
struct Read {
    /// Present rows of the repositories that are now locked; `None` if no other process can change
    /// them.
    mine: Option<Vec<Row>>,
    /// Repositories as they were at the start of the statement, like everything else that it read.
    repositories: Vec<Row>,
    entries: Vec<Row>,
    blobs: Vec<Row>,
}

async fn read(
    transaction: &mut Transaction,
    repositories: &BTreeSet<RepositoryId>,
    keys: &BTreeSet<(RepositoryId, &str)>,
    named: &BTreeSet<(RepositoryId, Sha256)>,
    waiting: Waiting,
) -> Result<Read, StoreError> {
    let now = transaction.now_ms();
    let key = |(repository, key): &(RepositoryId, &str)| [Value::from(repository.0), Value::from(*key)];
    let blob = |(repository, sha256): &(RepositoryId, Sha256)| {
        [Value::from(repository.0), Value::from(&sha256.0), Value::from(now)]
    };
    let ([entries, entries_end], [blobs, blobs_end]) = (ENTRIES, BLOBS);
    let mut statements = vec![
        MultiRow::new(REPOSITORIES[0], ids(repositories), REPOSITORIES[1]).finding(&REPOSITORIES_FIND),
        MultiRow::new(entries, keys.iter().map(key).collect(), entries_end).finding(&ENTRIES_FIND),
        MultiRow::new(blobs, named.iter().map(blob).collect(), blobs_end).finding(&BLOBS_FIND),
    ];
    if transaction.is_shared() {
        statements.push(lock(repositories, waiting).finding(&LOCK_FINDS));
    }
    let mut found = transaction.fetch_each(statements).await?.into_iter();
    let mut next = || found.next().unwrap_or_default();
    let (repositories, entries, blobs) = (next(), next(), next());
    Ok(Read { repositories, entries, blobs, mine: found.next() })
}

fn lock(repositories: &BTreeSet<RepositoryId>, waiting: Waiting) -> MultiRow {
    let after = match waiting {
        Waiting::No => ") AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE SKIP LOCKED",
        Waiting::Over => ") AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE",
    };
    MultiRow::new(LOCK, ids(repositories), after)
}

fn ids(repositories: &BTreeSet<RepositoryId>) -> Vec<[Value; 1]> {
    repositories.iter().map(|id| [Value::from(id.0)]).collect()
}

impl Read {
    /// Converts the rows; `None` if a repository changed between the start of the statement and its
    /// lock.
    fn stored(self) -> Result<Option<Stored>, StoreError> {
        let Read { mine, mut repositories, entries, blobs } = self;
        let mut locked = HashSet::new();
        if let Some(mine) = mine {
            let mine: HashMap<_, _> = mine.iter().map(revision).collect::<Result<_, _>>()?;
            let found = repositories.iter().map(revision).collect::<Result<Vec<_>, _>>()?;
            let is_changed =
                |(id, revision): &(RepositoryId, u64)| mine.get(id).is_some_and(|now| now != revision);
            let is_new = |id: &RepositoryId| found.iter().all(|(found, _)| found != id);
            if found.iter().any(is_changed) || mine.keys().any(is_new) {
                return Ok(None);
            }
            let mut is_mine = found.iter().map(|(id, _)| mine.contains_key(id));
            repositories.retain(|_| is_mine.next().unwrap_or_default());
            locked = found.iter().map(|(id, _)| *id).filter(|id| !mine.contains_key(id)).collect();
        }
        let rows = &repositories;
        Ok(Some(Stored {
            revisions: rows.iter().map(revision).collect::<Result<_, _>>()?,
            quotas: rows.iter().filter_map(|row| quota::set(row).transpose()).collect::<Result<_, _>>()?,
            hooked: rows.iter().filter_map(|row| hooked(row).transpose()).collect::<Result<_, _>>()?,
            locked,
            entries: entries.iter().map(entry).collect::<Result<_, _>>()?,
            blobs: blobs.iter().map(found_blob).collect::<Result<_, _>>()?,
        }))
    }
}

fn hooked(row: &Row) -> Result<Option<RepositoryId>, StoreError> {
    let mut columns = row.columns();
    let id = RepositoryId(columns.int("id")?);
    Ok(columns.bool("hooked")?.then_some(id))
}

/// Location of the bytes of these rows, keyed by id. On PostgreSQL the rows are locked until the
/// end of the transaction. The result includes changes of transactions that held a lock before.
pub(super) async fn lock_places(
    transaction: &mut Transaction,
    rows: &BTreeSet<i64>,
) -> Result<Vec<(i64, Option<String>)>, StoreError> {
    let ids: Vec<_> = rows.iter().map(|id| [Value::from(*id)]).collect();
    let end = if transaction.is_shared() { ") ORDER BY id FOR NO KEY UPDATE" } else { ")" };
    let lock = MultiRow::new("SELECT id, place FROM blobs WHERE id IN (VALUES ", ids, end);
    let found = transaction.fetch_each(vec![lock]).await?;
    found.iter().flatten().map(read_place).collect()
}

fn read_place(row: &Row) -> Result<(i64, Option<String>), StoreError> {
    let mut columns = row.columns();
    Ok((columns.int("id")?, columns.opt_text("place")?))
}

/// A blob of a trash entry; `None` if the entry has none.
pub(super) struct InTrash {
    pub(super) entry: TrashId,
    pub(super) repository: RepositoryId,
    pub(super) blob: Option<(Sha256, i64)>,
}

/// Trash entries among these that exist, with their blobs. On PostgreSQL, the entries are locked
/// until the end of the transaction.
pub(super) async fn in_trash(
    transaction: &mut Transaction,
    entries: impl Iterator<Item = TrashId>,
) -> Result<Vec<InTrash>, StoreError> {
    let ids: Vec<_> = entries.map(|entry| [Value::from(entry.0)]).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT e.id AS entry, e.repository, b.id, b.sha256 FROM trash e LEFT JOIN trash_blobs t ON t.entry = e.id \
               LEFT JOIN blobs b ON b.id = t.blob WHERE e.id IN (VALUES ";
    let end = if transaction.is_shared() { ") FOR UPDATE OF e" } else { ")" };
    let found = transaction.fetch_each(vec![MultiRow::new(sql, ids, end)]).await?;
    found.iter().flatten().map(entry_in_trash).collect()
}

fn entry_in_trash(row: &Row) -> Result<InTrash, StoreError> {
    let mut columns = row.columns();
    let (entry, repository) = (TrashId(columns.int("entry")?), RepositoryId(columns.int("repository")?));
    let blob = match columns.opt_int("id")? {
        Some(id) => Some((Sha256(columns.hash("sha256")?), id)),
        None => None,
    };
    Ok(InTrash { entry, repository, blob })
}

fn revision(row: &Row) -> Result<(RepositoryId, u64), StoreError> {
    let mut columns = row.columns();
    Ok((RepositoryId(columns.int("id")?), columns.unsigned("revision")?))
}

fn entry(row: &Row) -> Result<((RepositoryId, String), StoredRecord), StoreError> {
    let mut columns = row.columns();
    let place = (RepositoryId(columns.int("repository")?), columns.text("key")?);
    let (revision, blobs) = (columns.unsigned("revision")?, columns.opt_text("blobs")?);
    Ok((place, StoredRecord { revision, blobs: named_by(blobs.as_deref())? }))
}

/// Parses the column `blobs` of a record into ids of blob rows.
pub(crate) fn named_by(blobs: Option<&str>) -> Result<Vec<i64>, StoreError> {
    let number = |number: &str| {
        number.parse().map_err(|_| StoreError::Corrupt(format!("a record names the blob {number:?}")))
    };
    blobs.unwrap_or_default().split_ascii_whitespace().map(number).collect()
}

/// Column `blobs` of a record with these ids.
pub(super) fn blobs_column(ids: &BTreeSet<i64>) -> Option<String> {
    let numbers: Vec<String> = ids.iter().map(i64::to_string).collect();
    (!numbers.is_empty()).then(|| numbers.join(" "))
}

fn found_blob(row: &Row) -> Result<StoredBlob, StoreError> {
    let mut columns = row.columns();
    let repository = RepositoryId(columns.int("repository")?);
    Ok(StoredBlob {
        repository,
        sha256: Sha256(columns.hash("sha256")?),
        id: columns.int("id")?,
        place: columns.opt_text("place")?,
        held: columns.bool("held")?,
    })
}

pub(super) fn insert_blobs(fresh: &[&BlobRow], now: i64) -> MultiRow {
    let rows = fresh.iter().map(|row| blob_values(row, now)).collect();
    let before = "INSERT INTO blobs (id, sha256, size, checked, place, data, digests, created_at) VALUES ";
    MultiRow::new(before, rows, " ON CONFLICT (sha256) DO NOTHING")
}

/// Statements that replace missing, damaged or unreadable bytes of rows by uploaded ones. The old
/// bytes become orphans, which are removed once no reader can still use them.
pub(super) fn replace_bytes(replaced: &[(&BlobRow, &Examined)], due: i64) -> [MultiRow; 2] {
    let row = |(sent, before): &(&BlobRow, &Examined)| {
        let (place, data) = columns_of(&sent.place);
        let was = before.place.as_deref().unwrap_or_default();
        let size = Value::from(signed(sent.size));
        let (id, place) = (Value::from(before.id), Value::from(place));
        [id, Value::from(was), size, Value::from(sent.check), place, Value::from(data)]
    };
    let orphan =
        |(_, before): &(&BlobRow, &Examined)| Some([Value::from(before.place.as_deref()?), Value::from(due)]);
    let insert = "INSERT INTO strays (place, due) VALUES ";
    let orphans = replaced.iter().filter_map(orphan).collect();
    [
        MultiRow::new(REPLACE[0], replaced.iter().map(row).collect(), REPLACE[1]),
        MultiRow::new(insert, orphans, " ON CONFLICT (place) DO UPDATE SET due = excluded.due"),
    ]
}

/// Columns `place` and `data` of a blob.
fn columns_of(place: &BlobLocation) -> (Option<&str>, Option<&[u8]>) {
    match place {
        BlobLocation::Inline(bytes) => (None, Some(bytes.as_ref())),
        BlobLocation::Stored(key) => (Some(key.as_str()), None),
    }
}

fn blob_values(row: &BlobRow, now: i64) -> [Value; 8] {
    let (place, data) = columns_of(&row.place);
    let digests: Vec<String> = row.digests.iter().map(Digest::to_string).collect();
    [
        Value::from(row.id),
        Value::from(&row.sha256.0),
        Value::from(signed(row.size)),
        Value::from(row.check),
        Value::from(place),
        Value::from(data),
        Value::from(digests.join(" ")),
        Value::from(now),
    ]
}

pub(super) fn hold(leases: &BTreeSet<(i64, RepositoryId)>, until: i64) -> MultiRow {
    let row = |(blob, repository): &(i64, RepositoryId)| {
        [Value::from(*blob), Value::from(repository.0), Value::from(until)]
    };
    let before = "INSERT INTO leases (blob, repository, until) VALUES ";
    let after = " ON CONFLICT (blob, repository) DO UPDATE SET until = excluded.until";
    MultiRow::new(before, leases.iter().map(row).collect(), after)
}

pub(crate) fn unname(rows: Vec<[Value; 3]>) -> MultiRow {
    let [before, after] = UNNAME;
    MultiRow::new(before, rows, after)
}

pub(super) fn remove(rows: Vec<[Value; 2]>) -> MultiRow {
    let [before, after] = REMOVE;
    MultiRow::new(before, rows, after)
}

pub(super) fn put(rows: Vec<[Value; 5]>) -> MultiRow {
    let before = "INSERT INTO records (repository, key, value, revision, blobs) VALUES ";
    let after = " ON CONFLICT (repository, key) DO UPDATE SET value = excluded.value, \
                 revision = excluded.revision, blobs = excluded.blobs";
    MultiRow::new(before, rows, after)
}

pub(super) fn name(rows: Vec<[Value; 3]>) -> MultiRow {
    MultiRow::new("INSERT INTO record_blobs (blob, repository, key) VALUES ", rows, " ON CONFLICT DO NOTHING")
}

pub(super) fn set_revisions(revisions: Revisions) -> MultiRow {
    let row = |(id, revision): (RepositoryId, u64)| [Value::from(id.0), Value::from(signed(revision))];
    let [before, after] = REVISIONS;
    MultiRow::new(before, revisions.into_iter().map(row).collect(), after)
}
