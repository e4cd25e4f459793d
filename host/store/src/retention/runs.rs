//! Runs of retention policies. A claim in the policy's row assigns the run to one server. Any
//! server continues an interrupted run.

use std::time::Duration;

use super::policies::{COLUMNS, EVERY_MS, PolicyRow, policy_of};
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PolicyId, RunId, new_id};
use crate::store::Store;

/// Number of runs of a policy that are retained.
pub const MAX_RUNS: u32 = 100;
/// Lifetime of a claim that is not renewed.
const CLAIM: Duration = Duration::from_secs(20);

const RUN: &str = "id, started_at, ended_at, deleted, bytes, pending, skipped, error";

/// A run of a retention policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRow {
    pub id: RunId,
    /// Start time, in ms since 1970.
    pub started_at: i64,
    /// End time, in ms since 1970; `None` while the run continues.
    pub ended_at: Option<i64>,
    /// Number of versions that were deleted.
    pub deleted: u64,
    /// Total bytes of their files.
    pub bytes: u64,
    /// Deletions in progress, in the caller's format. After an interruption, they may have been
    /// carried out or not.
    pub pending: String,
    /// Versions that should be deleted but were not: a JSON list.
    pub skipped: String,
    /// Reason why the run stopped early.
    pub error: Option<String>,
}

/// A run that the caller must execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetentionClaim {
    /// The policy at the time of the claim.
    pub policy: PolicyRow,
    /// The run with its progress so far.
    pub run: RunRow,
    holder: i64,
}

impl Store {
    /// Makes an enforced policy due immediately. Returns false if it is not enforced.
    #[boxed]
    pub async fn request_run(
        &self,
        organization: OrganizationId,
        id: PolicyId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "UPDATE retention_policies SET due_at = 0 WHERE organization = $1 AND id = $2 AND mode = 'enforced'";
        let requested = transaction.execute(sql, values![organization.0, id.0]).await? == 1;
        if requested {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(requested)
    }

    /// Claims a policy that is due or whose run was interrupted, and that no other server works on.
    /// With `only`, it claims that policy even if it is not due.
    #[boxed]
    pub async fn claim_run(&self, only: Option<PolicyId>) -> Result<Option<RetentionClaim>, StoreError> {
        let (now, until) = (self.now_ms(), self.now_ms().saturating_add(CLAIM.as_millis() as i64));
        let only = only.map_or(0, |only| only.0);
        let sql = "SELECT id FROM retention_policies WHERE mode = 'enforced' AND claimed_until <= $1 AND ($2 = id OR $2 = 0 AND \
                   (due_at <= $1 OR EXISTS (SELECT 1 FROM retention_runs r WHERE r.policy = retention_policies.id \
                   AND r.ended_at IS NULL))) ORDER BY due_at, id LIMIT 1";
        let rows = self.inner.db.fetch_uncounted(sql, values![now, only]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let id = row.columns().int("id")?;
        let holder = new_id();
        let mut transaction = self.inner.db.begin().await?;
        let claim = format!(
            "UPDATE retention_policies SET claimed_until = $2, holder = $3, due_at = $4 \
             WHERE id = $1 AND claimed_until <= $5 AND mode = 'enforced' RETURNING {COLUMNS}"
        );
        let values = values![id, until, holder, now.saturating_add(EVERY_MS), now];
        let Some(row) = transaction.fetch_one(claim, values).await? else { return Ok(None) };
        let policy = policy_of(&mut row.columns())?;
        // The policy's rule changed during an interrupted run, so the run must end.
        let stale = "UPDATE retention_runs SET ended_at = $3, error = 'The policy was changed.' \
                     WHERE policy = $1 AND ended_at IS NULL AND digest <> $2";
        transaction.execute(stale, values![id, policy.digest.as_str(), now]).await?;
        let open = format!(
            "SELECT {RUN} FROM retention_runs WHERE policy = $1 AND ended_at IS NULL ORDER BY id LIMIT 1"
        );
        let run = match transaction.fetch_one(open, values![id]).await? {
            Some(row) => run(&row)?,
            None => {
                let run = RunId(new_id());
                let insert = "INSERT INTO retention_runs (id, policy, digest, started_at, deleted, bytes, pending, skipped) \
                              VALUES ($1, $2, $3, $4, 0, 0, '[]', '[]')";
                let values = values![run.0, id, policy.digest.as_str(), now];
                transaction.execute(insert, values).await?;
                RunRow {
                    id: run,
                    started_at: now,
                    ended_at: None,
                    deleted: 0,
                    bytes: 0,
                    pending: "[]".to_owned(),
                    skipped: "[]".to_owned(),
                    error: None,
                }
            }
        };
        transaction.commit().await?;
        Ok(Some(RetentionClaim { policy, run, holder }))
    }

    /// Records the progress of a run and renews its claim. Returns false if the claim was lost, or
    /// if the policy was paused, changed or deleted.
    #[boxed]
    pub async fn continue_run(&self, claim: &RetentionClaim) -> Result<bool, StoreError> {
        let until = self.now_ms().saturating_add(CLAIM.as_millis() as i64);
        let mut transaction = self.inner.db.begin().await?;
        let renew = "UPDATE retention_policies SET claimed_until = $3 WHERE id = $1 AND holder = $2 AND mode = 'enforced' \
                     AND digest = $4";
        let values = values![claim.policy.id.0, claim.holder, until, claim.policy.digest.as_str()];
        if transaction.execute(renew, values).await? == 0 {
            return Ok(false);
        }
        let RunRow { id, deleted, bytes, pending, skipped, .. } = &claim.run;
        let note =
            "UPDATE retention_runs SET deleted = $2, bytes = $3, skipped = $4, pending = $5 WHERE id = $1";
        let values = values![id.0, signed(*deleted), signed(*bytes), skipped.as_str(), pending.as_str()];
        transaction.execute(note, values).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Ends a run and releases the claim. Only the last hundred runs are retained.
    #[boxed]
    pub async fn end_run(&self, claim: &RetentionClaim, error: Option<&str>) -> Result<(), StoreError> {
        let RunRow { id, deleted, bytes, skipped, .. } = &claim.run;
        let policy = claim.policy.id.0;
        let mut transaction = self.inner.db.begin().await?;
        // The condition skips the update if another server has claimed the run.
        let end = "UPDATE retention_runs SET ended_at = $2, deleted = $3, bytes = $4, skipped = $5, error = $6, pending = '[]' WHERE id = $1 \
                   AND EXISTS (SELECT 1 FROM retention_policies p WHERE p.id = retention_runs.policy AND p.holder = $7)";
        let values = values![
            id.0,
            self.now_ms(),
            signed(*deleted),
            signed(*bytes),
            skipped.as_str(),
            error,
            claim.holder
        ];
        transaction.execute(end, values).await?;
        let old = "DELETE FROM retention_runs WHERE policy = $1 AND ended_at IS NOT NULL AND id NOT IN \
                   (SELECT id FROM retention_runs WHERE policy = $1 ORDER BY id DESC LIMIT $2)";
        transaction.execute(old, values![policy, i64::from(MAX_RUNS)]).await?;
        let free =
            "UPDATE retention_policies SET claimed_until = 0, holder = NULL WHERE id = $1 AND holder = $2";
        transaction.execute(free, values![policy, claim.holder]).await?;
        transaction.commit().await
    }

    /// Releases the claim of an unfinished run; any server may continue it.
    #[boxed]
    pub async fn leave_run(&self, claim: &RetentionClaim) -> Result<(), StoreError> {
        let free =
            "UPDATE retention_policies SET claimed_until = 0, holder = NULL WHERE id = $1 AND holder = $2";
        self.inner.db.execute(free, values![claim.policy.id.0, claim.holder]).await.map(drop)
    }

    /// Ends unclaimed runs of paused policies.
    #[boxed]
    pub async fn end_paused_runs(&self) -> Result<(), StoreError> {
        let paused = "SELECT 1 AS one FROM retention_runs r JOIN retention_policies p ON p.id = r.policy \
                      WHERE r.ended_at IS NULL AND p.mode <> 'enforced' AND p.claimed_until <= $1 LIMIT 1";
        if self.inner.db.fetch_uncounted(paused, values![self.now_ms()]).await?.is_empty() {
            return Ok(());
        }
        let end = "UPDATE retention_runs SET ended_at = $1, error = 'The policy was paused.' WHERE ended_at IS NULL AND policy IN \
                   (SELECT id FROM retention_policies WHERE mode <> 'enforced' AND claimed_until <= $1)";
        self.inner.db.execute(end, values![self.now_ms()]).await.map(drop)
    }

    /// Runs of a policy, the latest first, before the run `before`, at most `limit`.
    #[boxed]
    pub async fn list_runs(
        &self,
        policy: PolicyId,
        before: Option<RunId>,
        limit: u32,
    ) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "SELECT {RUN} FROM retention_runs WHERE policy = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        );
        let before = before.map_or(i64::MAX, |before| before.0);
        let rows = self.inner.db.fetch(sql, values![policy.0, before, i64::from(limit)]).await?;
        rows.iter().map(run).collect()
    }
}

fn run(row: &Row) -> Result<RunRow, StoreError> {
    let mut columns = row.columns();
    Ok(RunRow {
        id: RunId(columns.int("id")?),
        started_at: columns.int("started_at")?,
        ended_at: columns.opt_int("ended_at")?,
        deleted: columns.unsigned("deleted")?,
        bytes: columns.unsigned("bytes")?,
        pending: columns.text("pending")?,
        skipped: columns.text("skipped")?,
        error: columns.opt_text("error")?,
    })
}
