//! Recorded calls of the components that rules name: in the sets of [`recordings`](crate::recordings), under the same bounds, one set of
//! each rule.

use super::renumber;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RecordingId, RecordingSetId, RuleId, new_id};
use crate::recordings::{ARMED_MS, MAX_RECORDING_SETS, MAX_RECORDINGS, RECORDINGS, RecordingRow, recording};
use crate::store::Store;

/// That calls of a rule's component are recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRecording {
    /// The rule.
    pub rule: RuleId,
    /// The set that they go to.
    pub set: RecordingSetId,
    /// So many at most: the last ones.
    pub wanted: u32,
    /// An e-mail, or the name of a command.
    pub created_by: String,
    /// In ms since 1970.
    pub created_at: i64,
    /// When it stops, in ms since 1970.
    pub armed_until: i64,
}

const SETS: &str =
    "SELECT s.id, s.rule, s.wanted, s.created_by, s.created_at, s.armed_until FROM recording_sets s";

impl Store {
    /// Wants calls of a rule's component recorded that failed or refused, the last `wanted`, for [`RECORDING_DAYS`](crate::RECORDING_DAYS)
    /// at most. What was recorded of the rule before goes. None where there are [`MAX_RECORDING_SETS`], or the rule is gone; `Invalid` for
    /// a number of calls that is none.
    #[boxed]
    pub async fn record_rule(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        wanted: u32,
        created_by: String,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RuleRecording>, StoreError> {
        if wanted == 0 || wanted > MAX_RECORDINGS {
            return Err(StoreError::Invalid(format!(
                "a set has 1 to {MAX_RECORDINGS} recordings, not {wanted}"
            )));
        }
        let (set, now) = (RecordingSetId(new_id()), self.now_ms());
        let armed_until = now.saturating_add(ARMED_MS);
        let mut transaction = self.inner.db.begin().await?;
        forget_recordings_of(&mut transaction, organization, rule).await?;
        let insert = "INSERT INTO recording_sets (id, organization, format, repository, wanted, only_failures, created_by, created_at, \
                      armed_until, rule) SELECT $1, r.organization, '', 0, $2, 1, $3, $4, $5, r.id FROM policy_rules r \
                      WHERE r.organization = $6 AND r.id = $7 \
                      AND (SELECT COUNT(*) FROM recording_sets WHERE trial IS NULL) < $8";
        let values = values![
            set.0,
            i64::from(wanted),
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
        // So every server reads its rules anew, and with them what is recorded.
        renumber(&mut transaction, organization).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(RuleRecording { rule, set, wanted, created_by, created_at: now, armed_until }))
    }

    /// Records no more of a rule, and removes what was recorded of it; false where nothing was.
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

    /// What is recorded of an organization's rules at this time.
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
                wanted: u32::try_from(columns.int("wanted")?).unwrap_or_default(),
                created_by: columns.text("created_by")?,
                created_at: columns.int("created_at")?,
                armed_until: columns.int("armed_until")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// What was recorded of a rule, the newest first, at most `limit` before this one.
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

    /// The file of a recording of a rule, as it was kept.
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

/// Removes the set of a rule with what it holds; false where it has none.
pub(super) async fn forget_recordings_of(
    transaction: &mut Transaction,
    organization: OrganizationId,
    rule: RuleId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM recording_sets WHERE organization = $1 AND rule = $2";
    Ok(transaction.execute(sql, values![organization.0, rule.0]).await? > 0)
}
