//! Trials of components beside what their formats run: which there are, what servers count of them, and the calls that they recorded.

use super::components::{NewComponent, keep};
use super::rows::next_number;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, Transaction, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RecordingId, RecordingSetId, RepositoryId, TrialId, new_id};
use crate::recordings::{MAX_RECORDINGS, NewRecording, insert_recording};
use crate::store::Store;

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialRow {
    /// Its identifier.
    pub id: TrialId,
    /// What was asked for.
    pub new: NewTrial,
    /// In ms since 1970.
    pub started_at: i64,
    /// When it was taken back because too many calls failed, in ms since 1970.
    pub ended_at: Option<i64>,
    /// What all servers counted.
    pub counts: TrialCounts,
}

/// What shall be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTrial {
    /// The format.
    pub format: String,
    /// The component, as `sha256:` and hex.
    pub digest: String,
    /// `shadow` or `canary`.
    pub mode: String,
    /// Whose repositories are named, and who sees recordings.
    pub organization: OrganizationId,
    /// Where it is tried; none: in every repository of the format.
    pub repositories: Option<Vec<RepositoryId>>,
    /// 1 to 100: the share of credentials of a canary.
    pub percent: u32,
    /// Of a canary: so many calls may fail.
    pub max_failures: Option<u64>,
    /// An e-mail, or the name of a command.
    pub started_by: String,
}

/// What is counted of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCounts {
    /// Requests that the candidate was put to.
    pub calls: u64,
    /// Of a shadow: those that it answered like the active component.
    pub equal: u64,
    /// Of a shadow: those that it answered otherwise.
    pub different: u64,
    /// Those that it gave no answer to; of a canary also its own answers of 500 and above.
    pub failed: u64,
    /// Of a shadow: those for which it needed what only an upstream could have told.
    pub unanswered: u64,
    /// Of a shadow: those whose records changed meanwhile, so that nothing can be said.
    pub changed: u64,
    /// Of a shadow: further requests, for which there was no room.
    pub dropped: u64,
    /// Of the component that runs.
    pub active: TrialTimes,
    /// Of the candidate.
    pub candidate: TrialTimes,
}

/// How long calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialTimes {
    /// How many.
    pub calls: u64,
    /// All together, in µs.
    pub total_us: u64,
    /// The longest, in µs.
    pub max_us: u64,
}

/// Counts by column.
const SUMS: [&str; 11] = [
    "calls",
    "equal",
    "different",
    "failed",
    "unanswered",
    "changed",
    "dropped",
    "active_calls",
    "active_us",
    "candidate_calls",
    "candidate_us",
];
const COLUMNS: &str = "format, id, digest, mode, organization, repositories, percent, max_failures, started_by, started_at, ended_at, \
    calls, equal, different, failed, unanswered, changed, dropped, active_calls, active_us, active_max_us, candidate_calls, \
    candidate_us, candidate_max_us";

impl TrialCounts {
    fn sums(&self) -> [i64; SUMS.len()] {
        let TrialCounts { calls, equal, different, failed, unanswered, changed, dropped, active, candidate } =
            *self;
        [
            calls,
            equal,
            different,
            failed,
            unanswered,
            changed,
            dropped,
            active.calls,
            active.total_us,
            candidate.calls,
            candidate.total_us,
        ]
        .map(signed)
    }
}

impl Store {
    /// Begins a trial in place of that which its format has, whose recordings go: its identifier, or none where another change came
    /// after the one of this number.
    #[boxed]
    pub async fn begin_trial(
        &self,
        new: NewTrial,
        seen: i64,
        taken_in: Option<NewComponent>,
        audit: Option<AuditEvent>,
    ) -> Result<Option<TrialId>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if next_number(&mut transaction).await? != seen.saturating_add(1) {
            return Ok(None);
        }
        if let Some(component) = taken_in {
            keep(&mut transaction, component, self.now_ms()).await?;
        }
        forget_trial(&mut transaction, &new.format).await?;
        let recorded = "DELETE FROM recording_sets WHERE trial IS NOT NULL AND format = $1";
        transaction.execute(recorded, values![new.format.as_str()]).await?;
        let id = TrialId(new_id());
        let insert = format!(
            "INSERT INTO plugin_trials ({COLUMNS}) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)"
        );
        let NewTrial { format, digest, mode, organization, repositories, percent, max_failures, started_by } =
            new;
        let values = values![
            format,
            id.0,
            digest,
            mode,
            organization.0,
            repositories.map(written).transpose()?,
            i64::from(percent),
            max_failures.map(signed),
            started_by,
            self.now_ms()
        ];
        transaction.execute(insert, values).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(id))
    }

    /// Takes the trial of a format back: false where it has none.
    #[boxed]
    pub async fn end_trial(&self, format: &str, audit: Option<AuditEvent>) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        next_number(&mut transaction).await?;
        if !forget_trial(&mut transaction, format).await? {
            return Ok(false);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Ends a trial whose failures are too many, which is shown from then on: false where it has ended before.
    #[boxed]
    pub async fn take_trial_back(&self, id: TrialId, audit: Option<AuditEvent>) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        next_number(&mut transaction).await?;
        let end = "UPDATE plugin_trials SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL";
        if transaction.execute(end, values![id.0, self.now_ms()]).await? == 0 {
            return Ok(false);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// The trial of a format.
    #[boxed]
    pub async fn find_trial(&self, format: &str) -> Result<Option<TrialRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_trials WHERE format = $1");
        let row = self.inner.db.fetch_one(sql, values![format]).await?;
        row.as_ref().map(trial).transpose()
    }

    /// The trials of all formats.
    pub(super) async fn trials(&self) -> Result<Vec<TrialRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_trials ORDER BY format");
        self.inner.db.fetch_uncounted(sql, values![]).await?.iter().map(trial).collect()
    }

    /// Adds what a server counted of a trial: how many calls have failed now; none where it is gone.
    #[boxed]
    pub async fn add_trial_counts(
        &self,
        id: TrialId,
        counts: TrialCounts,
    ) -> Result<Option<u64>, StoreError> {
        let mut sets = Vec::new();
        for (place, column) in (2..).zip(SUMS) {
            sets.push(format!("{column} = {column} + ${place}"));
        }
        for (column, place) in [("active_max_us", 2 + SUMS.len()), ("candidate_max_us", 3 + SUMS.len())] {
            sets.push(format!("{column} = CASE WHEN {column} < ${place} THEN ${place} ELSE {column} END"));
        }
        let sql = format!("UPDATE plugin_trials SET {} WHERE id = $1 RETURNING failed", sets.join(", "));
        let mut values = values![id.0];
        for number in counts
            .sums()
            .into_iter()
            .chain([counts.active, counts.candidate].map(|times| signed(times.max_us)))
        {
            values.push(number.into());
        }
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let row = transaction.fetch_one(sql, values).await?;
        let failed = row.map(|row| row.columns().unsigned("failed")).transpose()?;
        transaction.commit().await?;
        Ok(failed)
    }

    /// Keeps a recording of a trial, of a call that `failed` or that was answered otherwise: the first [`MAX_RECORDINGS`] of each. False
    /// where it has enough or is gone, and where the repository is of another organization than whoever began the trial.
    #[boxed]
    pub async fn keep_trial_recording(
        &self,
        id: TrialId,
        repository: RepositoryId,
        failed: bool,
        new: NewRecording,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        // Others that keep one of the same trial wait for this row.
        let lock = "UPDATE plugin_trials SET id = id WHERE id = $1";
        if transaction.execute(lock, values![id.0]).await? == 0 {
            return Ok(false);
        }
        let count = "SELECT COUNT(*) AS kept FROM recordings r JOIN recording_sets s ON s.id = r.recording_set \
                     WHERE s.trial = $1 AND s.only_failures = $2";
        let kept = transaction.fetch_one(count, values![id.0, failed]).await?;
        let kept = kept.map_or(Ok(0), |row| row.columns().unsigned("kept"))?;
        if kept >= u64::from(MAX_RECORDINGS) {
            return Ok(false);
        }
        let Some(set) = set_of(&mut transaction, id, repository, failed, self.now_ms()).await? else {
            return Ok(false);
        };
        if !insert_recording(&mut transaction, set, new).await? {
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// The recordings of a trial, the newest first: of calls that failed, or of those that were answered otherwise.
    #[boxed]
    pub async fn trial_recordings(&self, id: TrialId, failed: bool) -> Result<Vec<RecordingId>, StoreError> {
        let sql = "SELECT r.id FROM recordings r JOIN recording_sets s ON s.id = r.recording_set \
                   WHERE s.trial = $1 AND s.only_failures = $2 ORDER BY r.id DESC LIMIT $3";
        let rows = self.inner.db.fetch(sql, values![id.0, failed, i64::from(MAX_RECORDINGS)]).await?;
        rows.iter().map(|row| Ok(RecordingId(row.columns().int("id")?))).collect()
    }
}

/// Forgets the trial of a format: false where it has none.
pub(super) async fn forget_trial(transaction: &mut Transaction, format: &str) -> Result<bool, StoreError> {
    let delete = "DELETE FROM plugin_trials WHERE format = $1";
    Ok(transaction.execute(delete, values![format]).await? > 0)
}

/// The set of what a trial records of a repository, which records nothing by itself; made where there is none.
async fn set_of(
    transaction: &mut Transaction,
    id: TrialId,
    repository: RepositoryId,
    failed: bool,
    now: i64,
) -> Result<Option<RecordingSetId>, StoreError> {
    let find = "SELECT id FROM recording_sets WHERE trial = $1 AND repository = $2 AND only_failures = $3";
    if let Some(row) = transaction.fetch_one(find, values![id.0, repository.0, failed]).await? {
        return Ok(Some(RecordingSetId(row.columns().int("id")?)));
    }
    let set = RecordingSetId(new_id());
    let insert = "INSERT INTO recording_sets (id, organization, format, repository, wanted, only_failures, created_by, created_at, \
                  armed_until, trial) SELECT $1, t.organization, t.format, p.id, $2, $3, t.started_by, $4, 0, t.id \
                  FROM plugin_trials t JOIN repositories p ON p.organization = t.organization WHERE t.id = $5 AND p.id = $6";
    let values = values![set.0, i64::from(MAX_RECORDINGS), failed, now, id.0, repository.0];
    Ok((transaction.execute(insert, values).await? > 0).then_some(set))
}

fn written(repositories: Vec<RepositoryId>) -> Result<String, StoreError> {
    let ids: Vec<i64> = repositories.into_iter().map(|id| id.0).collect();
    serde_json::to_string(&ids)
        .map_err(|error| StoreError::Invalid(format!("a trial's repositories: {error}")))
}

fn trial(row: &Row) -> Result<TrialRow, StoreError> {
    let mut columns = row.columns();
    let format = columns.text("format")?;
    let repositories = columns.opt_text("repositories")?.map(|text| {
        let ids: Result<Vec<i64>, _> = serde_json::from_str(&text);
        ids.map(|ids| ids.into_iter().map(RepositoryId).collect())
            .map_err(|error| StoreError::Corrupt(format!("the trial of the format {format}: {error}")))
    });
    let repositories = repositories.transpose()?;
    let counts = TrialCounts {
        calls: columns.unsigned("calls")?,
        equal: columns.unsigned("equal")?,
        different: columns.unsigned("different")?,
        failed: columns.unsigned("failed")?,
        unanswered: columns.unsigned("unanswered")?,
        changed: columns.unsigned("changed")?,
        dropped: columns.unsigned("dropped")?,
        active: TrialTimes {
            calls: columns.unsigned("active_calls")?,
            total_us: columns.unsigned("active_us")?,
            max_us: columns.unsigned("active_max_us")?,
        },
        candidate: TrialTimes {
            calls: columns.unsigned("candidate_calls")?,
            total_us: columns.unsigned("candidate_us")?,
            max_us: columns.unsigned("candidate_max_us")?,
        },
    };
    Ok(TrialRow {
        id: TrialId(columns.int("id")?),
        new: NewTrial {
            format,
            digest: columns.text("digest")?,
            mode: columns.text("mode")?,
            organization: OrganizationId(columns.int("organization")?),
            repositories,
            percent: u32::try_from(columns.int("percent")?).unwrap_or_default(),
            max_failures: columns.opt_int("max_failures")?.map(i64::unsigned_abs),
            started_by: columns.text("started_by")?,
        },
        started_at: columns.int("started_at")?,
        ended_at: columns.opt_int("ended_at")?,
        counts,
    })
}
