//! Scrub: reads every stored blob and verifies its SHA-256.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::blobs::hashing::Hasher;
use crate::blobs::repair::record_damage;
use crate::blobs::row::{BLOB_COLUMNS, BlobLocation, BlobRow, read_row};
use crate::blobs::source::Source;
use crate::boxed;
use crate::db::values;
use crate::digest::{Algorithm, Sha256};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use crate::webhooks::{EventKind, NewWebhookEvent, write_event};

/// Rows fetched at a time. A page with its inline bytes has a few MiB.
const PAGE: i64 = 100;
/// Bytes read at a time.
const CHUNK: u64 = 1024 * 1024;
/// Maximum number of records reported for one blob.
const NAMED: i64 = 1000;

/// Maximum number of records of one repository in an event.
const EVENT_RECORDS: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Number of blobs that were read.
    pub blobs: u64,
    /// Number of bytes that were read.
    pub bytes: u64,
    /// Blobs with damaged or missing bytes.
    pub damaged: Vec<Damaged>,
}

/// A blob that cannot be served any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Expected digest of the blob.
    pub sha256: Sha256,
    /// True if the bytes are missing completely.
    pub missing: bool,
    /// Records that name the blob, at most 1,000.
    pub records: Vec<(RepositoryId, String)>,
}

#[derive(PartialEq)]
enum Condition {
    Sound,
    Damaged,
    Missing,
}

impl Store {
    /// Reads every blob, with at most `bytes_per_second`, and reports damaged or missing ones.
    /// `Unavailable` if the database or the storage failed.
    #[boxed]
    pub async fn scrub(&self, bytes_per_second: Option<u64>) -> Result<ScrubReport, StoreError> {
        let mut report = ScrubReport::default();
        let mut pace = Pace { since: Instant::now(), bytes: 0, per_second: bytes_per_second };
        let sql = format!("SELECT {BLOB_COLUMNS} FROM blobs b WHERE b.id > $1 ORDER BY b.id LIMIT $2");
        let mut last = i64::MIN;
        loop {
            let rows = self.inner.db.fetch(sql.clone(), values![last, PAGE]).await?;
            if rows.is_empty() {
                report.bytes = pace.bytes;
                return Ok(report);
            }
            for row in &rows {
                let mut columns = row.columns();
                let (id, sha256) = (columns.int("id")?, Sha256(columns.hash("sha256")?));
                let (condition, key) = match read_row(row) {
                    Ok(row) => {
                        let condition = self.examine(&row, &mut pace).await?;
                        if condition == Condition::Sound && row.damaged {
                            self.forget_damage(&row).await?;
                        }
                        (condition, row.key().to_owned())
                    }
                    Err(StoreError::Corrupt(_)) => (Condition::Damaged, String::new()),
                    Err(error) => return Err(error),
                };
                report.blobs += 1;
                if condition != Condition::Sound && self.has_bytes(id, &key).await? {
                    tracing::error!(blob = id, %sha256, "a stored blob is damaged or missing");
                    record_damage(&self.inner.db, id, &key).await;
                    let (missing, records) = (condition == Condition::Missing, self.naming(id).await?);
                    let damaged = Damaged { sha256, missing, records };
                    self.notify_damage(&damaged).await?;
                    report.damaged.push(damaged);
                }
                last = id;
            }
        }
    }

    async fn examine(&self, row: &BlobRow, pace: &mut Pace) -> Result<Condition, StoreError> {
        let source = match &row.place {
            BlobLocation::Inline(bytes) => Source::Bytes(bytes.clone()),
            BlobLocation::Stored(key) => match Source::open(&self.inner.storage, key, row.size).await {
                Ok(source) => source,
                Err(StoreError::Corrupt(_)) => return Ok(Condition::Missing),
                Err(error) => return Err(error),
            },
        };
        let Some(length) = source.length().await? else { return Ok(Condition::Missing) };
        if length != row.size {
            return Ok(Condition::Damaged);
        }
        let mut hasher = Hasher::new(Algorithm::Sha256);
        let mut at = 0;
        while at < length {
            let chunk = match source.read(at..length.min(at + CHUNK)).await {
                Ok(chunk) if !chunk.is_empty() => chunk,
                // A file that cannot be read counts as damaged.
                Err(error) if matches!(source, Source::Object(_)) && error.is_unavailable() => {
                    return Err(error);
                }
                _ => return Ok(Condition::Damaged),
            };
            at += chunk.len() as u64;
            pace.limit(chunk.len() as u64).await;
            hasher = tokio::task::spawn_blocking(move || {
                hasher.update(&chunk);
                hasher
            })
            .await
            .map_err(StoreError::storage)?;
        }
        Ok(if hasher.finish() == row.sha256.0 { Condition::Sound } else { Condition::Damaged })
    }

    /// Notifies the webhooks of organizations whose records name the blob, one event for each
    /// repository.
    async fn notify_damage(&self, damaged: &Damaged) -> Result<(), StoreError> {
        let repositories: BTreeSet<RepositoryId> = damaged.records.iter().map(|(id, _)| *id).collect();
        for id in repositories {
            let mut transaction = self.inner.db.begin().await?;
            let find =
                "SELECT organization, name, format FROM repositories WHERE id = $1 AND deleted_at IS NULL";
            let Some(row) = transaction.fetch_one(find, values![id.0]).await? else { continue };
            let mut columns = row.columns();
            let organization = OrganizationId(columns.int("organization")?);
            let (name, format) = (columns.text("name")?, columns.text("format")?);
            let records = damaged.records.iter().filter(|(of, _)| *of == id).take(EVENT_RECORDS);
            let records: Vec<&str> = records.map(|(_, key)| key.as_str()).collect();
            let event = NewWebhookEvent {
                kind: EventKind::BlobCorrupt,
                repository: Some(id),
                about: ("blobs", id.0),
                subject: format!("{name}/{}", damaged.sha256.digest()),
                data: json!({"repository": {"id": id.to_string(), "name": name, "format": format},
                    "digest": damaged.sha256.digest().to_string(), "missing": damaged.missing, "records": records}),
            };
            let hooks = write_event(&mut transaction, organization, event).await?;
            if !hooks.is_empty() {
                transaction.commit().await?;
                self.inner.delivery_notifier.notify(hooks);
            }
        }
        Ok(())
    }

    /// True if the row still has these bytes. A collection may have removed the blob while it was
    /// read, or a publish may have replaced its bytes.
    async fn has_bytes(&self, id: i64, key: &str) -> Result<bool, StoreError> {
        let sql = "SELECT id FROM blobs WHERE id = $1 AND COALESCE(place, '') = $2";
        Ok(self.inner.db.fetch_one(sql, values![id, key]).await?.is_some())
    }

    async fn naming(&self, id: i64) -> Result<Vec<(RepositoryId, String)>, StoreError> {
        let sql =
            "SELECT repository, key FROM record_blobs WHERE blob = $1 ORDER BY repository, key LIMIT $2";
        let rows = self.inner.db.fetch(sql, values![id, NAMED]).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                Ok((RepositoryId(columns.int("repository")?), columns.text("key")?))
            })
            .collect()
    }
}

/// Limits the bytes read in a second.
struct Pace {
    since: Instant,
    bytes: u64,
    per_second: Option<u64>,
}

impl Pace {
    async fn limit(&mut self, bytes: u64) {
        self.bytes += bytes;
        let Some(per_second) = self.per_second.filter(|rate| *rate > 0) else { return };
        let target = Duration::from_millis(self.bytes.saturating_mul(1000) / per_second);
        tokio::time::sleep(target.saturating_sub(self.since.elapsed())).await;
    }
}
