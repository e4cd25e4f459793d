//! Recorded calls of plugins: which calls must be recorded, and the files of the recordings. The
//! numbers of sets and recordings, the total bytes and the age are bounded; the store deletes the
//! oldest recordings first.

use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Columns, Row, Transaction, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RecordingId, RecordingSetId, RepositoryId, new_id};
use crate::store::Store;

/// Maximum number of sets in the database.
pub const MAX_RECORDING_SETS: u32 = 100;
/// Maximum number of recordings of a set.
pub const MAX_RECORDINGS: u32 = 50;
/// Days after which a set and its recordings are deleted.
pub const RECORDING_DAYS: u32 = 7;

/// Maximum stored bytes of all recordings.
const MAX_BYTES: i64 = 256 << 20;
/// Maximum stored bytes of one recording.
const MAX_RECORDING_BYTES: usize = 16 << 20;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum time for which a set records, in ms.
pub(crate) const ARMED_MS: i64 = RECORDING_DAYS as i64 * DAY_MS;

const SETS: &str = "SELECT s.id, s.organization, s.format, s.repository, s.wanted, s.only_failures, s.created_by, s.created_at, s.armed_until, \
    (SELECT COUNT(*) FROM recordings r WHERE r.recording_set = s.id) AS recorded FROM recording_sets s";
/// Condition that a set still records.
const ARMED: &str = "s.armed_until > $1 AND (s.only_failures = 1 \
    OR (SELECT COUNT(*) FROM recordings r WHERE r.recording_set = s.id) < s.wanted)";
pub(crate) const RECORDINGS: &str = "SELECT r.id, r.recording_set, s.repository, r.recorded_at, r.function, r.outcome, r.component, r.is_cut, r.bytes \
    FROM recordings r JOIN recording_sets s ON s.id = r.recording_set";

/// A set of recordings, and which calls it records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSet {
    pub id: RecordingSetId,
    pub organization: OrganizationId,
    pub format: String,
    /// Repository whose calls are recorded.
    pub repository: RepositoryId,
    /// Maximum number of recordings: the first ones, or the last ones of failing calls.
    pub max_recordings: u32,
    /// True if only failing calls are recorded.
    pub only_failures: bool,
    /// E-mail address of the creator, or the name of a command.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
    /// End of the recording, in ms since 1970.
    pub armed_until: i64,
    /// Number of recordings in the set.
    pub recorded: u32,
}

/// A set of recordings to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecordingSet {
    pub organization: OrganizationId,
    pub format: String,
    /// Repository whose calls are recorded.
    pub repository: RepositoryId,
    /// Maximum number of recordings, 1 to [`MAX_RECORDINGS`].
    pub max_recordings: u32,
    /// True if only failing calls are recorded.
    pub only_failures: bool,
    /// E-mail address of the creator, or the name of a command.
    pub created_by: String,
}

/// A recording, without its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    pub id: RecordingId,
    /// Set that contains the recording.
    pub set: RecordingSetId,
    pub repository: RepositoryId,
    /// Time of the call, in ms since 1970.
    pub recorded_at: i64,
    /// Called function of the plugin.
    pub function: String,
    /// Outcome of the call, in a word.
    pub outcome: String,
    /// Digest of the component, as `sha256:` and hex.
    pub component: String,
    /// True if the recording is incomplete.
    pub is_cut: bool,
    /// Stored size of the file in bytes.
    pub bytes: u64,
}

/// A recording to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecording {
    /// Time of the call, in ms since 1970.
    pub recorded_at: i64,
    /// Called function of the plugin.
    pub function: String,
    /// Outcome of the call, in a word.
    pub outcome: String,
    /// Digest of the component, as `sha256:` and hex.
    pub component: String,
    /// True if the recording is incomplete.
    pub is_cut: bool,
    /// Content of the file, compressed.
    pub content: Vec<u8>,
}

impl Store {
    /// Starts to record calls of a repository, for at most [`RECORDING_DAYS`]. Returns `None` if
    /// there are [`MAX_RECORDING_SETS`] already. `Invalid` if the number of calls is out of range.
    #[boxed]
    pub async fn create_recording_set(
        &self,
        new: NewRecordingSet,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RecordingSet>, StoreError> {
        let NewRecordingSet { organization, format, repository, max_recordings, only_failures, created_by } =
            new;
        if max_recordings == 0 || max_recordings > MAX_RECORDINGS {
            return Err(StoreError::Invalid(format!(
                "a set must have 1 to {MAX_RECORDINGS} recordings, not {max_recordings}"
            )));
        }
        let (id, now) = (RecordingSetId(new_id()), self.now_ms());
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO recording_sets (id, organization, format, repository, wanted, only_failures, created_by, created_at, \
                      armed_until) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 \
                      WHERE (SELECT COUNT(*) FROM recording_sets) < $10";
        let most = i64::from(MAX_RECORDING_SETS);
        let until = now.saturating_add(ARMED_MS);
        let values = values![
            id.0,
            organization.0,
            format.as_str(),
            repository.0,
            i64::from(max_recordings),
            only_failures,
            created_by.as_str(),
            now,
            until,
            most
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(RecordingSet {
            id,
            organization,
            format,
            repository,
            max_recordings,
            only_failures,
            created_by,
            created_at: now,
            armed_until: until,
            recorded: 0,
        }))
    }

    /// All sets of every organization that record calls of format plugins.
    #[boxed]
    pub async fn armed_recording_sets(&self) -> Result<Vec<RecordingSet>, StoreError> {
        let sql = format!("{SETS} WHERE {ARMED} AND s.rule IS NULL ORDER BY s.id");
        let rows = self.inner.db.fetch_uncounted(sql, values![self.now_ms()]).await?;
        rows.iter().map(set).collect()
    }

    /// The set of this identifier in this organization and format.
    #[boxed]
    pub async fn recording_set(
        &self,
        organization: OrganizationId,
        format: &str,
        id: RecordingSetId,
    ) -> Result<Option<RecordingSet>, StoreError> {
        let sql = format!("{SETS} WHERE s.id = $1 AND s.organization = $2 AND s.format = $3");
        let row = self.inner.db.fetch_one(sql, values![id.0, organization.0, format]).await?;
        row.as_ref().map(set).transpose()
    }

    /// Stores a recording in a set. The set retains the last failing calls, or otherwise the first
    /// calls. Returns false if the set is gone or full, or if the recording is too large.
    #[boxed]
    pub async fn keep_recording(&self, of: RecordingSetId, new: NewRecording) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        // Locks the set's row, so that concurrent writers of the same set wait.
        let lock = "UPDATE recording_sets SET wanted = wanted WHERE id = $1";
        if transaction.execute(lock, values![of.0]).await? == 0 {
            return Ok(false);
        }
        let armed = format!("SELECT s.id FROM recording_sets s WHERE s.id = $2 AND {ARMED}");
        let records = transaction.fetch_one(armed, values![self.now_ms(), of.0]).await?.is_some();
        if !records || !insert_recording(&mut transaction, of, new).await? {
            return Ok(false);
        }
        let too_many = "DELETE FROM recordings WHERE recording_set = $1 AND id <= (SELECT r.id FROM recordings r \
                        WHERE r.recording_set = $1 ORDER BY r.id DESC LIMIT 1 \
                        OFFSET (SELECT s.wanted FROM recording_sets s WHERE s.id = $1))";
        transaction.execute(too_many, values![of.0]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Recordings of a format in an organization, the newest first. If a set is given, only its
    /// recordings.
    #[boxed]
    pub async fn recordings(
        &self,
        organization: OrganizationId,
        format: &str,
        of: Option<RecordingSetId>,
        before: Option<RecordingId>,
        limit: u32,
    ) -> Result<Vec<RecordingRow>, StoreError> {
        let sql = format!(
            "{RECORDINGS} WHERE s.organization = $1 AND s.format = $2 AND r.id < $3 AND ($4 = 0 OR s.id = $4) \
             ORDER BY r.id DESC LIMIT $5"
        );
        let before = before.map_or(i64::MAX, |before| before.0);
        let of = of.map_or(0, |of| of.0);
        let values = values![organization.0, format, before, of, i64::from(limit)];
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| recording(&mut row.columns())).collect()
    }

    /// Stored file of a recording.
    #[boxed]
    pub async fn recording(
        &self,
        organization: OrganizationId,
        format: &str,
        id: RecordingId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT r.content FROM recordings r JOIN recording_sets s ON s.id = r.recording_set \
                   WHERE r.id = $1 AND s.organization = $2 AND s.format = $3";
        let row = self.inner.db.fetch_one(sql, values![id.0, organization.0, format]).await?;
        row.map(|row| row.columns().vec("content")).transpose()
    }

    /// Deletes a set with its recordings, or one recording. Returns false if neither has this
    /// identifier.
    #[boxed]
    pub async fn delete_recordings(
        &self,
        organization: OrganizationId,
        format: &str,
        id: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let recording = "DELETE FROM recordings WHERE id = $1 AND recording_set IN \
                         (SELECT s.id FROM recording_sets s WHERE s.organization = $2 AND s.format = $3)";
        let set = "DELETE FROM recording_sets WHERE id = $1 AND organization = $2 AND format = $3";
        let mut deleted = 0;
        for sql in [recording, set] {
            deleted += transaction.execute(sql, values![id, organization.0, format]).await?;
        }
        if deleted == 0 {
            return Ok(false);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Deletes expired sets, and sets of deleted repositories and rules.
    #[boxed]
    pub async fn forget_recordings(&self) -> Result<u64, StoreError> {
        let over = "DELETE FROM recording_sets WHERE created_at <= $1 OR CASE WHEN rule IS NULL \
                    THEN NOT EXISTS (SELECT 1 FROM repositories p WHERE p.id = recording_sets.repository) \
                    ELSE NOT EXISTS (SELECT 1 FROM policy_rules p WHERE p.id = recording_sets.rule) END";
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let before = self.now_ms().saturating_sub(i64::from(RECORDING_DAYS).saturating_mul(DAY_MS));
        let forgotten = transaction.execute(over, values![before]).await?;
        transaction.commit().await?;
        Ok(forgotten)
    }
}

/// Stores a recording in an existing set. The oldest of all recordings are deleted until the total
/// is within the limit. Returns false if the recording is too large.
async fn insert_recording(
    transaction: &mut Transaction,
    of: RecordingSetId,
    new: NewRecording,
) -> Result<bool, StoreError> {
    if new.content.len() > MAX_RECORDING_BYTES {
        return Ok(false);
    }
    let insert = "INSERT INTO recordings (id, recording_set, recorded_at, function, outcome, component, is_cut, bytes, content) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let NewRecording { recorded_at, function, outcome, component, is_cut, content } = new;
    let bytes = signed(content.len() as u64);
    let values = values![new_id(), of.0, recorded_at, function, outcome, component, is_cut, bytes, content];
    transaction.execute(insert, values).await?;
    let too_large = "DELETE FROM recordings WHERE id IN (SELECT t.id FROM (SELECT r.id, \
                     SUM(r.bytes) OVER (ORDER BY r.id DESC) AS total FROM recordings r) t WHERE t.total > $1)";
    transaction.execute(too_large, values![MAX_BYTES]).await?;
    Ok(true)
}

fn set(row: &Row) -> Result<RecordingSet, StoreError> {
    let mut columns = row.columns();
    Ok(RecordingSet {
        id: RecordingSetId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        format: columns.text("format")?,
        repository: RepositoryId(columns.int("repository")?),
        max_recordings: small(columns.int("wanted")?),
        only_failures: columns.bool("only_failures")?,
        created_by: columns.text("created_by")?,
        created_at: columns.int("created_at")?,
        armed_until: columns.int("armed_until")?,
        recorded: small(columns.int("recorded")?),
    })
}

pub(crate) fn recording(columns: &mut Columns<'_>) -> Result<RecordingRow, StoreError> {
    Ok(RecordingRow {
        id: RecordingId(columns.int("id")?),
        set: RecordingSetId(columns.int("recording_set")?),
        repository: RepositoryId(columns.int("repository")?),
        recorded_at: columns.int("recorded_at")?,
        function: columns.text("function")?,
        outcome: columns.text("outcome")?,
        component: columns.text("component")?,
        is_cut: columns.bool("is_cut")?,
        bytes: columns.unsigned("bytes")?,
    })
}

fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
