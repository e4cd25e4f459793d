//! Deletions of packages in progress. A row lists the remaining versions, so that another server
//! can continue if the first one is gone.

use std::time::Duration;

use crate::accounts::AuditEvent;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, new_id};
use crate::store::Store;

/// Lifetime of a claim that is not renewed.
const CLAIM: Duration = Duration::from_secs(20);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deletion {
    /// Id of the row in `deletions`.
    pub id: i64,
    pub repository: RepositoryId,
    pub name: String,
    /// Versions that are not deleted yet.
    pub versions: Vec<String>,
    /// Audit event of each deletion, except for its subject.
    pub event: AuditEvent,
}

impl Store {
    /// Records that these versions must be deleted; the caller holds the claim.
    #[boxed]
    pub async fn begin_deletion(
        &self,
        repository: RepositoryId,
        name: &str,
        versions: Vec<String>,
        event: AuditEvent,
    ) -> Result<Deletion, StoreError> {
        let (id, name) = (new_id(), name.to_owned());
        let sql = "INSERT INTO deletions (id, repository, name, versions, event, claimed_until) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let (left, event_text) = (list(&versions), event_json(&event));
        let values = values![id, repository.0, name.as_str(), left, event_text, self.deletion_claim(CLAIM)];
        self.execute_for(repository, sql, values).await?;
        Ok(Deletion { id, repository, name, versions, event })
    }

    /// Claims a deletion that no server works on.
    #[boxed]
    pub async fn claim_deletion(&self) -> Result<Option<Deletion>, StoreError> {
        let sql = "SELECT id FROM deletions WHERE claimed_until <= $1 ORDER BY id LIMIT 1";
        let rows = self.inner.db.fetch_uncounted(sql, values![self.now_ms()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut transaction = self.inner.db.begin().await?;
        let claim = "UPDATE deletions SET claimed_until = $2 WHERE id = $1 AND claimed_until <= $3 \
                     RETURNING id, repository, name, versions, event";
        let values = values![row.columns().int("id")?, self.deletion_claim(CLAIM), self.now_ms()];
        let claimed = transaction.fetch_one(claim, values).await?;
        transaction.commit().await?;
        claimed.as_ref().map(deletion).transpose()
    }

    /// Records the remaining versions and renews the claim. If no version is left, removes the row
    /// of the deletion.
    #[boxed]
    pub async fn continue_deletion(&self, id: i64, left: &[String]) -> Result<(), StoreError> {
        if left.is_empty() {
            return self.inner.db.execute("DELETE FROM deletions WHERE id = $1", values![id]).await.map(drop);
        }
        let sql = "UPDATE deletions SET versions = $2, claimed_until = $3 WHERE id = $1";
        self.inner.db.execute(sql, values![id, list(left), self.deletion_claim(CLAIM)]).await.map(drop)
    }

    /// Releases the claim: any server may claim the deletion after `pause`.
    #[boxed]
    pub async fn leave_deletion(&self, id: i64, pause: Duration) -> Result<(), StoreError> {
        let sql = "UPDATE deletions SET claimed_until = $2 WHERE id = $1";
        self.inner.db.execute(sql, values![id, self.deletion_claim(pause)]).await.map(drop)
    }

    fn deletion_claim(&self, lasts: Duration) -> i64 {
        self.now_ms().saturating_add(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX))
    }
}

fn list(versions: &[String]) -> String {
    serde_json::json!(versions).to_string()
}

fn event_json(event: &AuditEvent) -> String {
    let AuditEvent { organization, actor, credential, action, subject, address, request_id, detail } = event;
    serde_json::json!([organization.0, actor, credential, action, subject, address, request_id, detail])
        .to_string()
}

fn deletion(row: &Row) -> Result<Deletion, StoreError> {
    let mut columns = row.columns();
    let (id, repository, name) =
        (columns.int("id")?, RepositoryId(columns.int("repository")?), columns.text("name")?);
    let (versions, event) = (columns.text("versions")?, columns.text("event")?);
    let damaged = |problem| StoreError::Corrupt(format!("the deletion {id}: {problem}"));
    let versions = serde_json::from_str(&versions).map_err(damaged)?;
    type DeletionNotice = (i64, String, String, String, String, String, String, String);
    let (organization, actor, credential, action, subject, address, request_id, detail) =
        serde_json::from_str::<DeletionNotice>(&event).map_err(damaged)?;
    let organization = OrganizationId(organization);
    let event = AuditEvent { organization, actor, credential, action, subject, address, request_id, detail };
    Ok(Deletion { id, repository, name, versions, event })
}
