//! The statements of a batch: each over all its rows at once.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::job::Waiting;
use super::quota::{self, Quotas};
use crate::accounts::Revisions;
use crate::blobs::row::{BlobRow, Examined, Place};
use crate::db::{Found as Column, MultiRow, Row, Transaction, Value, found, signed};
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
    "WITH wanted (repository, sha256, now) AS (VALUES ",
    ") SELECT wanted.repository, b.sha256, b.id, b.place, \
        CAST(CASE WHEN EXISTS (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = wanted.repository) \
        OR EXISTS (SELECT 1 FROM leases l WHERE l.blob = b.id AND l.repository = wanted.repository AND l.until > wanted.now) \
        THEN 1 ELSE 0 END AS BIGINT) AS held \
      FROM wanted JOIN blobs b ON b.sha256 = wanted.sha256",
];
const BLOBS_FIND: [Column; 5] =
    found!["repository": BIGINT, "sha256": BYTEA, "id": BIGINT, "place": TEXT, "held": BIGINT];
/// Gives a row the bytes that were sent again, in the place of those that were examined.
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

/// A blob that is stored, as one repository sees it.
pub(super) struct Found {
    pub(super) repository: RepositoryId,
    pub(super) sha256: Sha256,
    pub(super) id: i64,
    /// The key of its bytes; none where they lie in the row.
    pub(super) place: Option<String>,
    /// Whether a record or a lease of this repository holds it.
    pub(super) held: bool,
}

/// A record that is stored.
#[derive(Default)]
pub(super) struct Known {
    pub(super) revision: u64,
    /// Rows of the blobs that it names.
    pub(super) blobs: Vec<i64>,
}

/// What is stored of what a batch is about.
pub(super) struct Stored {
    pub(super) revisions: HashMap<RepositoryId, u64>,
    /// Of those repositories where one of both is set.
    pub(super) quotas: Vec<Quotas>,
    /// Repositories of organizations that have hooks.
    pub(super) hooked: BTreeSet<RepositoryId>,
    /// Repositories that are there and were not waited for.
    pub(super) locked: HashSet<RepositoryId>,
    pub(super) entries: HashMap<(RepositoryId, String), Known>,
    pub(super) blobs: Vec<Found>,
}

/// How often at most what is stored is read because it was changed between the reading and the lock of one statement.
const READINGS: u32 = 4;

/// Locks a repository until the transaction's end, for which it waits. What is read by the statement that waits is what was there before
/// the wait, so this one reads nothing.
pub(super) async fn wait_for(
    transaction: &mut Transaction,
    repository: RepositoryId,
) -> Result<(), StoreError> {
    transaction.fetch_each(vec![lock(&BTreeSet::from([repository]), Waiting::Over)]).await?;
    Ok(())
}

/// Asks for all of it. Where other processes may change it, the repositories are locked by the same statement, but for those that
/// another has locked and that are not waited for: what was read stands until the transaction's end.
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
            None => return Err(StoreError::database("a repository changes though it is locked")),
        }
    }
}

/// What a statement found.
struct Read {
    /// Where other processes may change them: the repositories that are locked now, as they are.
    mine: Option<Vec<Row>>,
    /// The repositories as they were when the statement began, like all that it found.
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
    let mut asked = vec![
        MultiRow::new(REPOSITORIES[0], ids(repositories), REPOSITORIES[1]).finding(&REPOSITORIES_FIND),
        MultiRow::new(entries, keys.iter().map(key).collect(), entries_end).finding(&ENTRIES_FIND),
        MultiRow::new(blobs, named.iter().map(blob).collect(), blobs_end).finding(&BLOBS_FIND),
    ];
    if transaction.is_shared() {
        asked.push(lock(repositories, waiting).finding(&LOCK_FINDS));
    }
    let mut found = transaction.fetch_each(asked).await?.into_iter();
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
    /// None when a repository was changed between the beginning of the statement and the moment at which it was locked.
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

/// Where the bytes of these rows lie, by the rows' ids. On PostgreSQL the rows are locked until the transaction's end: what is returned
/// is what the transaction that had a row locked before has left there.
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

/// A blob of an entry of the trash; none where the entry has none.
pub(super) struct InTrash {
    pub(super) entry: TrashId,
    pub(super) repository: RepositoryId,
    pub(super) blob: Option<(Sha256, i64)>,
}

/// Which of these entries are there, with what they hold; on PostgreSQL they stay until the transaction's end.
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

fn entry(row: &Row) -> Result<((RepositoryId, String), Known), StoreError> {
    let mut columns = row.columns();
    let place = (RepositoryId(columns.int("repository")?), columns.text("key")?);
    let (revision, blobs) = (columns.unsigned("revision")?, columns.opt_text("blobs")?);
    Ok((place, Known { revision, blobs: named_by(blobs.as_deref())? }))
}

/// The rows of blobs that the column `blobs` of a record has.
pub(crate) fn named_by(blobs: Option<&str>) -> Result<Vec<i64>, StoreError> {
    let number = |number: &str| {
        number.parse().map_err(|_| StoreError::Corrupt(format!("a record names the blob {number:?}")))
    };
    blobs.unwrap_or_default().split_ascii_whitespace().map(number).collect()
}

/// The column for these.
pub(super) fn blobs_column(ids: &BTreeSet<i64>) -> Option<String> {
    let numbers: Vec<String> = ids.iter().map(i64::to_string).collect();
    (!numbers.is_empty()).then(|| numbers.join(" "))
}

fn found_blob(row: &Row) -> Result<Found, StoreError> {
    let mut columns = row.columns();
    let repository = RepositoryId(columns.int("repository")?);
    Ok(Found {
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

/// Rows whose bytes were found missing, damaged or too many to be read get those that were sent.
/// What they had before is an orphan, which goes when nobody reads it any more.
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

/// The columns `place` and `data`.
fn columns_of(place: &Place) -> (Option<&str>, Option<&[u8]>) {
    match place {
        Place::Inline(bytes) => (None, Some(bytes.as_ref())),
        Place::Stored(key) => (Some(key.as_str()), None),
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
