//! Recorded calls of the components of rules. They use the sets of
//! [`recordings`](crate::recordings) with the same bounds, one set for each rule.

use super::renumber;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RecordingId, RecordingSetId, RuleId, new_id};
use crate::recordings::{ARMED_MS, MAX_RECORDING_SETS, MAX_RECORDINGS, RECORDINGS, RecordingRow, recording};
use crate::store::Store;

/// A recording of calls of a rule's component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRecording {
    pub rule: RuleId,
    /// Set that receives the recordings.
    pub set: RecordingSetId,
    /// Maximum number of recordings; the last ones are retained.
    pub max_recordings: u32,
    /// E-mail address of the creator, or the name of a command.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
    /// End of the recording, in ms since 1970.
    pub armed_until: i64,
}

const SETS: &str =
    "SELECT s.id, s.rule, s.wanted, s.created_by, s.created_at, s.armed_until FROM recording_sets s";

impl Store {
    /// Starts to record the last `max_recordings` failing or refusing calls of a rule's component,
    /// for at most [`RECORDING_DAYS`](crate::RECORDING_DAYS). Earlier recordings of the rule are
    /// deleted. Returns `None` if there are [`MAX_RECORDING_SETS`], or if the rule is gone.
    /// `Invalid` if the number of calls is out of range.
    #[boxed]
    pub async fn record_rule(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        max_recordings: u32,
        created_by: String,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RuleRecording>, StoreError> {
        if max_recordings == 0 || max_recordings > MAX_RECORDINGS {
            return Err(StoreError::Invalid(format!(
                "a set must have 1 to {MAX_RECORDINGS} recordings, not {max_recordings}"
            )));
        }
        let (set, now) = (RecordingSetId(new_id()), self.now_ms());
        let armed_until = now.saturating_add(ARMED_MS);
        let mut transaction = self.inner.db.begin().await?;
        forget_recordings_of(&mut transaction, organization, rule).await?;
        let insert = "INSERT INTO recording_sets (id, organization, format, repository, wanted, only_failures, created_by, created_at, \
                      armed_until, rule) SELECT $1, r.organization, '', 0, $2, 1, $3, $4, $5, r.id FROM policy_rules r \
                      WHERE r.organization = $6 AND r.id = $7 \
                      AND (SELECT COUNT(*) FROM recording_sets) < $8";
        let values = values![
            set.0,
            i64::from(max_recordings),
            created_by.as_str(),
            now,
            armed_until,
            organization.0,
            rule.0,
            i64::from(MAX_RECORDING_SETS)
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        // The new number makes every server reload the rules, and with them the calls to record.
        renumber(&mut transaction, organization).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(RuleRecording { rule, set, max_recordings, created_by, created_at: now, armed_until }))
    }

    /// Stops recording a rule and deletes its recordings. Returns false if nothing was recorded.
    #[boxed]
    pub async fn stop_recording_rule(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if !forget_recordings_of(&mut transaction, organization, rule).await? {
            return Ok(false);
        }
        renumber(&mut transaction, organization).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Active recordings of an organization's rules.
    #[boxed]
    pub async fn rules_that_record(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<RuleRecording>, StoreError> {
        let sql = format!(
            "{SETS} WHERE s.organization = $1 AND s.rule IS NOT NULL AND s.armed_until > $2 ORDER BY s.id"
        );
        let rows = self.inner.db.fetch(sql, values![organization.0, self.now_ms()]).await?;
        let read = |row: &crate::db::Row| {
            let mut columns = row.columns();
            Ok(RuleRecording {
                set: RecordingSetId(columns.int("id")?),
                rule: RuleId(columns.int("rule")?),
                max_recordings: u32::try_from(columns.int("wanted")?).unwrap_or_default(),
                created_by: columns.text("created_by")?,
                created_at: columns.int("created_at")?,
                armed_until: columns.int("armed_until")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Recordings of a rule, the newest first, before this one, at most `limit`.
    #[boxed]
    pub async fn rule_recordings(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        before: Option<RecordingId>,
        limit: u32,
    ) -> Result<Vec<RecordingRow>, StoreError> {
        let sql = format!(
            "{RECORDINGS} WHERE s.organization = $1 AND s.rule = $2 AND r.id < $3 ORDER BY r.id DESC LIMIT $4"
        );
        let before = before.map_or(i64::MAX, |before| before.0);
        let values = values![organization.0, rule.0, before, i64::from(limit)];
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| recording(&mut row.columns())).collect()
    }

    /// Stored file of a recording of a rule.
    #[boxed]
    pub async fn rule_recording(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        id: RecordingId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT r.content FROM recordings r JOIN recording_sets s ON s.id = r.recording_set \
                   WHERE r.id = $1 AND s.organization = $2 AND s.rule = $3";
        let row = self.inner.db.fetch_one(sql, values![id.0, organization.0, rule.0]).await?;
        row.map(|row| row.columns().vec("content")).transpose()
    }
}

/// Deletes the set of a rule with its recordings; false if it has none.
pub(super) async fn forget_recordings_of(
    transaction: &mut Transaction,
    organization: OrganizationId,
    rule: RuleId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM recording_sets WHERE organization = $1 AND rule = $2";
    Ok(transaction.execute(sql, values![organization.0, rule.0]).await? > 0)
}
