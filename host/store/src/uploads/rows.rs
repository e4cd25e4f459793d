//! The table `uploads`. Every change is a compare-and-set on the claim.

use std::time::Duration;

use bytes::Bytes;

use crate::blobs::fs::random_id;
use crate::blobs::hashing::Sums;
use crate::blobs::objects::Multipart;
use crate::blobs::orphans;
use crate::blobs::sink::Parts;
use crate::db::{signed, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Lifetime of a claim that is not renewed. After a server was killed, the client must wait this
/// long before it can continue.
pub(super) const CLAIM: Duration = Duration::from_secs(15);

/// State that is needed to continue an upload.
pub(super) struct UploadRow {
    pub(super) length: u64,
    pub(super) state: Vec<u8>,
    pub(super) multipart: Option<Multipart>,
    pub(super) tail: Bytes,
    pub(super) tags: Vec<String>,
}

/// Unique number for a claim; 0 means unclaimed.
pub(super) fn new_claim() -> i64 {
    rand::random_range(1..i64::MAX)
}

fn claim_end(now: i64) -> i64 {
    now.saturating_add(i64::try_from(CLAIM.as_millis()).unwrap_or(i64::MAX))
}

pub(super) async fn insert(
    store: &Store,
    repository: RepositoryId,
    note: &str,
) -> Result<String, StoreError> {
    let (name, state) = (random_id(), Sums::default().save());
    let sql = "INSERT INTO uploads (name, repository, note, length, state, claim, claimed_until, updated_at) \
               VALUES ($1, $2, $3, 0, $4, 0, 0, $5)";
    let values = values![name.as_str(), repository.0, note, state, store.now_ms()];
    store.execute_for(repository, sql, values).await?;
    Ok(name)
}

/// Note and length of an upload.
pub(super) async fn find(
    store: &Store,
    repository: RepositoryId,
    name: &str,
) -> Result<Option<(String, u64)>, StoreError> {
    let sql = "SELECT note, length FROM uploads WHERE name = $1 AND repository = $2";
    let Some(row) = store.inner.db.find(sql, values![name, repository.0]).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    Ok(Some((columns.text("note")?, columns.unsigned("length")?)))
}

pub(super) async fn length(store: &Store, name: &str) -> Result<Option<u64>, StoreError> {
    let row = store.inner.db.find("SELECT length FROM uploads WHERE name = $1", values![name]).await?;
    row.map(|row| row.columns().unsigned("length")).transpose()
}

/// Bytes of the open uploads of a repository, and of all repositories.
pub(super) async fn open_bytes(store: &Store, repository: RepositoryId) -> Result<(u64, u64), StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(CASE WHEN repository = $1 THEN length ELSE 0 END), 0) AS BIGINT) AS own_bytes, \
               CAST(COALESCE(SUM(length), 0) AS BIGINT) AS all_bytes FROM uploads";
    let Some(row) = store.inner.db.find(sql, values![repository.0]).await? else { return Ok((0, 0)) };
    let mut columns = row.columns();
    Ok((columns.unsigned("own_bytes")?, columns.unsigned("all_bytes")?))
}

pub(super) async fn exists(store: &Store, name: &str) -> Result<bool, StoreError> {
    Ok(length(store, name).await?.is_some())
}

/// Claims the upload unless it is claimed already, or its length differs from the expected one.
pub(super) async fn claim(
    store: &Store,
    name: &str,
    claim: i64,
    length: Option<u64>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE uploads SET claim = $2, claimed_until = $3 \
               WHERE name = $1 AND claimed_until <= $4 AND length = COALESCE($5, length)";
    let now = store.now_ms();
    let values = values![name, claim, claim_end(now), now, length.map(signed)];
    Ok(store.inner.db.execute(sql, values).await? == 1)
}

/// Renews a claim; false if it is lost.
pub(super) async fn renew(store: &Store, name: &str, claim: i64) -> Result<bool, StoreError> {
    let sql = "UPDATE uploads SET claimed_until = $3, updated_at = $4 WHERE name = $1 AND claim = $2";
    let now = store.now_ms();
    Ok(store.inner.db.execute(sql, values![name, claim, claim_end(now), now]).await? == 1)
}

pub(super) async fn release(store: &Store, name: &str, claim: i64) -> Result<(), StoreError> {
    let sql = "UPDATE uploads SET claim = 0, claimed_until = 0 WHERE name = $1 AND claim = $2";
    store.inner.db.execute(sql, values![name, claim]).await?;
    Ok(())
}

/// State of an upload, if it has this claim.
pub(super) async fn read(store: &Store, name: &str, claim: i64) -> Result<Option<UploadRow>, StoreError> {
    let sql = "SELECT length, state, place, multipart, tail FROM uploads WHERE name = $1 AND claim = $2";
    let Some(row) = store.inner.db.find(sql, values![name, claim]).await? else { return Ok(None) };
    let mut columns = row.columns();
    let (length, state) = (columns.unsigned("length")?, columns.vec("state")?);
    let (key, id) = (columns.opt_text("place")?, columns.opt_text("multipart")?);
    let multipart = key.zip(id).map(|(key, id)| Multipart { key, id });
    let tail = Bytes::from(columns.opt_vec("tail")?.unwrap_or_default());
    let sql = "SELECT tag FROM upload_parts WHERE upload = $1 ORDER BY number";
    let parts = store.inner.db.fetch(sql, values![name]).await?;
    let tags = parts.iter().map(|row| row.columns().text("tag")).collect::<Result<_, _>>()?;
    Ok(Some(UploadRow { length, state, multipart, tail, tags }))
}

/// Records the new number of durable bytes, and releases the claim. Returns false if the claim is
/// lost.
pub(super) async fn advance(
    store: &Store,
    name: &str,
    claim: i64,
    length: u64,
    state: Vec<u8>,
    parts: Option<Parts>,
) -> Result<bool, StoreError> {
    let Parts { multipart, tags, known, tail } = parts.unwrap_or_default();
    let (key, id) = multipart.map(|multipart| (multipart.key, multipart.id)).unzip();
    let mut transaction = store.inner.db.begin().await?;
    let sql = "UPDATE uploads SET length = $3, state = $4, place = $5, multipart = $6, tail = $7, claim = 0, \
               claimed_until = 0, updated_at = $8 WHERE name = $1 AND claim = $2";
    let tail = Some(tail.as_ref()).filter(|tail| !tail.is_empty());
    let values = values![name, claim, signed(length), state, key.as_deref(), id, tail, store.now_ms()];
    if transaction.execute(sql, values).await? == 0 {
        return Ok(false);
    }
    let row = |(number, tag): (usize, String)| {
        [name.into(), i64::try_from(number).unwrap_or(i64::MAX).into(), tag.into()]
    };
    let rows = tags.into_iter().enumerate().skip(known).map(row).collect();
    transaction.execute_rows("INSERT INTO upload_parts (upload, number, tag) VALUES ", rows, "").await?;
    if let Some(key) = key
        && transaction.execute(orphans::RENEW, values![key, store.inner.orphans.upload_due()]).await? == 0
    {
        return Ok(false);
    }
    transaction.commit().await?;
    Ok(true)
}

/// Removes the row if it has this claim; false if the claim is lost.
pub(super) async fn delete_claimed(store: &Store, name: &str, claim: i64) -> Result<bool, StoreError> {
    let sql = "DELETE FROM uploads WHERE name = $1 AND claim = $2";
    Ok(store.inner.db.execute(sql, values![name, claim]).await? == 1)
}

/// Removes the row if its last change was at `untouched_since` (`None`: at any time), and returns
/// the key of its object, if any. `None` if there was no row.
pub(super) async fn delete(
    store: &Store,
    name: &str,
    untouched_since: Option<i64>,
) -> Result<Option<Option<String>>, StoreError> {
    let mut transaction = store.inner.db.begin().await?;
    let sql = "DELETE FROM uploads WHERE name = $1 AND updated_at = COALESCE($2, updated_at) RETURNING place";
    let row = transaction.fetch_one(sql, values![name, untouched_since]).await?;
    let place = row.map(|row| row.columns().opt_text("place")).transpose()?;
    transaction.commit().await?;
    Ok(place)
}

/// Names of a repository's uploads.
pub(super) async fn of(store: &Store, repository: RepositoryId) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM uploads WHERE repository = $1";
    let rows = store.inner.db.fetch(sql, values![repository.0]).await?;
    rows.iter().map(|row| row.columns().text("name")).collect()
}

/// Uploads without an append for this number of milliseconds, each with the time of its last
/// append.
pub(super) async fn idle_since(store: &Store, ms: i64) -> Result<Vec<(String, i64)>, StoreError> {
    let now = store.now_ms();
    let sql = "SELECT name, updated_at FROM uploads WHERE updated_at <= $1 AND claimed_until <= $2";
    let rows = store.inner.db.fetch(sql, values![now.saturating_sub(ms), now]).await?;
    rows.iter()
        .map(|row| {
            let mut columns = row.columns();
            Ok((columns.text("name")?, columns.int("updated_at")?))
        })
        .collect()
}
