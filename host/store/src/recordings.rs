//! Recorded calls of plugins: which are wanted, and the files of those that were made. All of it is bounded: sets, recordings of a set, bytes
//! of all, and age; what is over goes, the oldest first.

use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Columns, Row, Transaction, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RecordingId, RecordingSetId, RepositoryId, new_id};
use crate::store::Store;

/// Sets that there may be.
pub const MAX_RECORDING_SETS: u32 = 100;
/// Recordings that a set may want.
pub const MAX_RECORDINGS: u32 = 50;
/// Days after which a set is gone, with what it holds.
pub const RECORDING_DAYS: u32 = 7;

/// Bytes of all recordings, as they are kept.
const MAX_BYTES: i64 = 256 << 20;
/// Bytes of one, as it is kept.
const MAX_RECORDING_BYTES: usize = 16 << 20;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How long a set records at most.
pub(crate) const ARMED_MS: i64 = RECORDING_DAYS as i64 * DAY_MS;

const SETS: &str = "SELECT s.id, s.organization, s.format, s.repository, s.wanted, s.only_failures, s.created_by, s.created_at, s.armed_until, \
    (SELECT COUNT(*) FROM recordings r WHERE r.recording_set = s.id) AS recorded FROM recording_sets s";
/// A set that records still.
const ARMED: &str = "s.armed_until > $1 AND (s.only_failures = 1 \
    OR (SELECT COUNT(*) FROM recordings r WHERE r.recording_set = s.id) < s.wanted)";
pub(crate) const RECORDINGS: &str = "SELECT r.id, r.recording_set, s.repository, r.recorded_at, r.function, r.outcome, r.component, r.is_cut, r.bytes \
    FROM recordings r JOIN recording_sets s ON s.id = r.recording_set";

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSet {
    /// Its identifier.
    pub id: RecordingSetId,
    /// The repository's organization.
    pub organization: OrganizationId,
    /// The repository's format.
    pub format: String,
    /// Whose calls.
    pub repository: RepositoryId,
    /// So many at most: the first, or of failing ones the last.
    pub wanted: u32,
    /// Only calls that fail.
    pub only_failures: bool,
    /// An e-mail, or the name of a command.
    pub created_by: String,
    /// In ms since 1970.
    pub created_at: i64,
    /// When it stops to record, in ms since 1970.
    pub armed_until: i64,
    /// How many it holds.
    pub recorded: u32,
}

/// What shall be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecordingSet {
    /// The repository's organization.
    pub organization: OrganizationId,
    /// The repository's format.
    pub format: String,
    /// Whose calls.
    pub repository: RepositoryId,
    /// 1 to [`MAX_RECORDINGS`].
    pub wanted: u32,
    /// Only calls that fail.
    pub only_failures: bool,
    /// An e-mail, or the name of a command.
    pub created_by: String,
}

/// A recording, without its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// Its identifier.
    pub id: RecordingId,
    /// The set that it belongs to.
    pub set: RecordingSetId,
    /// Whose call.
    pub repository: RepositoryId,
    /// In ms since 1970.
    pub recorded_at: i64,
    /// The plugin's function.
    pub function: String,
    /// How it ended, in a word.
    pub outcome: String,
    /// `sha256:` and hexadecimal digits.
    pub component: String,
    /// Whether it is not whole.
    pub is_cut: bool,
    /// Of the file, as it is kept.
    pub bytes: u64,
}

/// A recording to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecording {
    /// In ms since 1970.
    pub recorded_at: i64,
    /// The plugin's function.
    pub function: String,
    /// How it ended, in a word.
    pub outcome: String,
    /// `sha256:` and hexadecimal digits.
    pub component: String,
    /// Whether it is not whole.
    pub is_cut: bool,
    /// The file, compressed.
    pub content: Vec<u8>,
}

impl Store {
    /// Wants calls of a repository recorded, for [`RECORDING_DAYS`] at most; none when there are [`MAX_RECORDING_SETS`] already. `Invalid`
    /// for a number of calls that is none.
    #[boxed]
    pub async fn create_recording_set(
        &self,
        new: NewRecordingSet,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RecordingSet>, StoreError> {
        let NewRecordingSet { organization, format, repository, wanted, only_failures, created_by } = new;
        if wanted == 0 || wanted > MAX_RECORDINGS {
            return Err(StoreError::Invalid(format!(
                "a set has 1 to {MAX_RECORDINGS} recordings, not {wanted}"
            )));
        }
        let (id, now) = (RecordingSetId(new_id()), self.now_ms());
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO recording_sets (id, organization, format, repository, wanted, only_failures, created_by, created_at, \
                      armed_until) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 \
                      WHERE (SELECT COUNT(*) FROM recording_sets WHERE trial IS NULL) < $10";
        let most = i64::from(MAX_RECORDING_SETS);
        let until = now.saturating_add(ARMED_MS);
        let values = values![
            id.0,
            organization.0,
            format.as_str(),
            repository.0,
            i64::from(wanted),
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
            wanted,
            only_failures,
            created_by,
            created_at: now,
            armed_until: until,
            recorded: 0,
        }))
    }

    /// All sets that record calls of formats' plugins, of every organization.
    #[boxed]
    pub async fn armed_recording_sets(&self) -> Result<Vec<RecordingSet>, StoreError> {
        let sql = format!("{SETS} WHERE {ARMED} AND s.rule IS NULL ORDER BY s.id");
        let rows = self.inner.db.fetch_uncounted(sql, values![self.now_ms()]).await?;
        rows.iter().map(set).collect()
    }

    /// The set of this identifier, of this organization and format.
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

    /// Keeps a recording in a set: of failing calls the last ones stay, else the first. False where the set is gone or has enough, and
    /// for what is too large.
    #[boxed]
    pub async fn keep_recording(&self, of: RecordingSetId, new: NewRecording) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        // Others that keep one in the same set wait for this row.
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

    /// Recordings of an organization's repositories of a format, the newest first; of one set alone where one is named.
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

    /// The file of a recording, as it was kept.
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

    /// Removes a set with what it holds, or one recording; false where there is neither of this identifier.
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

    /// Removes the sets that are over, and those of repositories and of rules that are gone.
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

/// Keeps a recording in a set that there is; of all recordings the oldest go that are over the bound. False for what is too large.
pub(crate) async fn insert_recording(
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
        wanted: small(columns.int("wanted")?),
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
