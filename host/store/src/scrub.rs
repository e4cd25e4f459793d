//! Scrub: every stored blob read again and its SHA-256 compared.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::blobs::hashing::Hasher;
use crate::blobs::repair::note_damage;
use crate::blobs::row::{BLOB_COLUMNS, BlobRow, Place, read_row};
use crate::blobs::source::Source;
use crate::boxed;
use crate::db::values;
use crate::digest::{Algorithm, Sha256};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use crate::webhooks::{EventKind, Telling, tell};

/// Rows fetched at a time: with what lies in them, a few MiB.
const PAGE: i64 = 100;
/// Bytes read at a time.
const CHUNK: u64 = 1024 * 1024;
/// The most records that are named for one blob.
const NAMED: i64 = 1000;

/// Records of one repository that an event names.
const TOLD: usize = 100;

/// What a scrub found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Blobs read.
    pub blobs: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Blobs that are not what was stored, or not there.
    pub damaged: Vec<Damaged>,
}

/// A blob that cannot be served any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The digest it should have.
    pub sha256: Sha256,
    /// Its bytes are not there at all.
    pub missing: bool,
    /// The records that name it, 1,000 at most.
    pub records: Vec<(RepositoryId, String)>,
}

/// How a blob is.
#[derive(PartialEq)]
enum Condition {
    Sound,
    Damaged,
    Missing,
}

impl Store {
    /// Reads every blob, at most `bytes_per_second`, and names those that are damaged or missing. `Unavailable` when database
    /// or storage failed.
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
                    note_damage(&self.inner.db, id, &key).await;
                    let (missing, records) = (condition == Condition::Missing, self.naming(id).await?);
                    let damaged = Damaged { sha256, missing, records };
                    self.tell_of_damage(&damaged).await?;
                    report.damaged.push(damaged);
                }
                last = id;
            }
        }
    }

    async fn examine(&self, row: &BlobRow, pace: &mut Pace) -> Result<Condition, StoreError> {
        let source = match &row.place {
            Place::Inline(bytes) => Source::Bytes(bytes.clone()),
            Place::Stored(key) => match Source::open(&self.inner.storage, key, row.size).await {
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
                // A file that is there and cannot be read is as bad as one that is not what it was.
                Err(error) if matches!(source, Source::Object(_)) && error.is_unavailable() => {
                    return Err(error);
                }
                _ => return Ok(Condition::Damaged),
            };
            at += chunk.len() as u64;
            pace.keep(chunk.len() as u64).await;
            hasher = tokio::task::spawn_blocking(move || {
                hasher.update(&chunk);
                hasher
            })
            .await
            .map_err(StoreError::storage)?;
        }
        Ok(if hasher.finish() == row.sha256.0 { Condition::Sound } else { Condition::Damaged })
    }

    /// Tells the webhooks of those whose records name the blob, a repository at a time.
    async fn tell_of_damage(&self, damaged: &Damaged) -> Result<(), StoreError> {
        let repositories: BTreeSet<RepositoryId> = damaged.records.iter().map(|(id, _)| *id).collect();
        for id in repositories {
            let mut transaction = self.inner.db.begin().await?;
            let find =
                "SELECT organization, name, format FROM repositories WHERE id = $1 AND deleted_at IS NULL";
            let Some(row) = transaction.fetch_one(find, values![id.0]).await? else { continue };
            let mut columns = row.columns();
            let organization = OrganizationId(columns.int("organization")?);
            let (name, format) = (columns.text("name")?, columns.text("format")?);
            let records = damaged.records.iter().filter(|(of, _)| *of == id).take(TOLD);
            let records: Vec<&str> = records.map(|(_, key)| key.as_str()).collect();
            let telling = Telling {
                kind: EventKind::BlobCorrupt,
                repository: Some(id),
                about: ("blobs", id.0),
                subject: format!("{name}/{}", damaged.sha256.digest()),
                data: json!({"repository": {"id": id.to_string(), "name": name, "format": format},
                    "digest": damaged.sha256.digest().to_string(), "missing": damaged.missing, "records": records}),
            };
            let hooks = tell(&mut transaction, organization, telling).await?;
            if !hooks.is_empty() {
                transaction.commit().await?;
                self.inner.bell.ring(hooks);
            }
        }
        Ok(())
    }

    /// Whether it is still a blob with these bytes: a collection may have removed it while it was
    /// read, or a publish replaced them.
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

/// Keeps to a number of bytes a second.
struct Pace {
    since: Instant,
    bytes: u64,
    per_second: Option<u64>,
}

impl Pace {
    async fn keep(&mut self, bytes: u64) {
        self.bytes += bytes;
        let Some(per_second) = self.per_second.filter(|rate| *rate > 0) else { return };
        let wanted = Duration::from_millis(self.bytes.saturating_mul(1000) / per_second);
        tokio::time::sleep(wanted.saturating_sub(self.since.elapsed())).await;
    }
}
