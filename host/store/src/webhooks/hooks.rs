//! Webhooks of an organization: creation, changes and deletion.

use std::fmt;

use super::event::{EventKind, kinds_of, repositories_of};
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, WebhookId, new_id};
use crate::store::Store;

/// Maximum number of webhooks of an organization.
pub const MAX_WEBHOOKS: u32 = 50;

const COLUMNS: &str = "id, organization, url, events, repositories, state, paused_at, paused_because, full_at, created_by, created_at";

/// A webhook, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookRow {
    pub id: WebhookId,
    pub organization: OrganizationId,
    /// URL that receives the events.
    pub url: String,
    /// Kinds of events that it receives.
    pub events: Vec<EventKind>,
    /// Repositories of these events; `None` for all.
    pub repositories: Option<Vec<RepositoryId>>,
    /// True unless the webhook is paused.
    pub active: bool,
    /// Time since it is paused, in ms since 1970.
    pub paused_at: Option<i64>,
    /// Reason for people why the webhook is paused; `None` if a user paused it.
    pub paused_because: Option<String>,
    /// Time since its queue is full, in ms since 1970. Events since then are not delivered to it.
    pub full_at: Option<i64>,
    /// E-mail address of the creator.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
}

/// A webhook to be created.
#[derive(Clone)]
pub struct NewWebhook {
    /// URL that receives the events.
    pub url: String,
    /// Kinds of events that it receives.
    pub events: Vec<EventKind>,
    /// Repositories of these events; `None` for all.
    pub repositories: Option<Vec<RepositoryId>>,
    /// E-mail address of the creator.
    pub created_by: String,
}

/// A change of a webhook; fields that are `None` stay unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebhookChange {
    /// URL that receives the events.
    pub url: Option<String>,
    /// Kinds of events that it receives.
    pub events: Option<Vec<EventKind>>,
    /// Repositories of these events; `Some(None)` for all.
    pub repositories: Option<Option<Vec<RepositoryId>>>,
    /// True to resume the webhook, false to pause it.
    pub active: Option<bool>,
}

impl fmt::Debug for NewWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        f.debug_struct("NewWebhook").field("events", &self.events).finish_non_exhaustive()
    }
}

impl Store {
    /// New identifier for a webhook. The caller seals the secret for this identifier before it
    /// creates the webhook.
    #[must_use]
    pub fn new_webhook_id(&self) -> WebhookId {
        WebhookId(new_id())
    }

    /// Creates a webhook with this sealed secret; `None` if the organization has the maximum
    /// number. The webhook receives all events that any server commits after this call.
    #[boxed]
    pub async fn create_webhook(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        new: NewWebhook,
        sealed: &str,
        audit: Option<AuditEvent>,
    ) -> Result<Option<WebhookRow>, StoreError> {
        let NewWebhook { url, events, repositories, created_by } = new;
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO webhooks (id, organization, url, events, repositories, secret, state, created_by, created_at, claim, \
                      claimed_until) SELECT $1, $2, $3, $4, $5, $6, 'active', $7, $8, 0, 0 \
                      WHERE (SELECT COUNT(*) FROM webhooks WHERE organization = $2 AND deleted_at IS NULL) < $9";
        let (events, repositories) = (events_text(&events), repositories_text(repositories.as_deref()));
        let values = values![
            id.0,
            organization.0,
            url,
            events,
            repositories,
            sealed,
            created_by,
            self.now_ms(),
            i64::from(MAX_WEBHOOKS)
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_webhook(organization, id).await
    }

    /// The webhook of this identifier in this organization.
    #[boxed]
    pub async fn find_webhook(
        &self,
        organization: OrganizationId,
        id: WebhookId,
    ) -> Result<Option<WebhookRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhooks WHERE organization = $1 AND id = $2 AND deleted_at IS NULL"
        );
        let row = self.inner.db.fetch_one(sql, values![organization.0, id.0]).await?;
        row.as_ref().map(webhook).transpose()
    }

    /// Webhooks in the order of creation, after the identifier `after`, at most `limit`.
    #[boxed]
    pub async fn list_webhooks(
        &self,
        organization: OrganizationId,
        after: Option<WebhookId>,
        limit: u32,
    ) -> Result<Vec<WebhookRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM webhooks WHERE organization = $1 AND id > $2 AND deleted_at IS NULL ORDER BY id LIMIT $3"
        );
        let after = after.map_or(i64::MIN, |after| after.0);
        let rows = self.inner.db.fetch(sql, values![organization.0, after, i64::from(limit)]).await?;
        rows.iter().map(webhook).collect()
    }

    /// Changes a webhook; `None` if it does not exist. A resumed webhook immediately receives all
    /// waiting events; their earlier failures no longer count.
    #[boxed]
    pub async fn change_webhook(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        change: WebhookChange,
        audit: Option<AuditEvent>,
    ) -> Result<Option<WebhookRow>, StoreError> {
        let WebhookChange { url, events, repositories, active } = change;
        let now = self.now_ms();
        let mut transaction = self.inner.db.begin().await?;
        let set = "UPDATE webhooks SET url = COALESCE($3, url), events = COALESCE($4, events), \
                   repositories = COALESCE($5, repositories) WHERE organization = $1 AND id = $2 AND deleted_at IS NULL";
        let events = events.as_deref().map(events_text);
        let repositories = repositories.map(|ids| repositories_text(ids.as_deref()));
        let values = values![organization.0, id.0, url, events, repositories];
        if transaction.execute(set, values).await? == 0 {
            return Ok(None);
        }
        match active {
            Some(true) => {
                let resume = "UPDATE webhooks SET state = 'active', paused_at = NULL, paused_because = NULL WHERE id = $1";
                transaction.execute(resume, values![id.0]).await?;
                let again = "UPDATE webhook_deliveries SET since = NULL, failures = 0, due_at = $2 \
                             WHERE hook = $1 AND queue = 1 AND since IS NOT NULL";
                transaction.execute(again, values![id.0, now]).await?;
            }
            Some(false) => {
                let pause =
                    "UPDATE webhooks SET state = 'paused', paused_at = $2 WHERE id = $1 AND state = 'active'";
                transaction.execute(pause, values![id.0, now]).await?;
            }
            None => {}
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify([id]);
        self.find_webhook(organization, id).await
    }

    /// Pauses a webhook whose deliveries failed for too long. Returns false if it is paused already
    /// or gone.
    #[boxed]
    pub async fn pause_webhook(&self, id: WebhookId, because: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE webhooks SET state = 'paused', paused_at = $2, paused_because = $3 \
                   WHERE id = $1 AND state = 'active' AND deleted_at IS NULL";
        Ok(self.inner.db.execute(sql, values![id.0, self.now_ms(), because]).await? == 1)
    }

    /// Deletes a webhook; false if it does not exist. Deliveries stop, except for tries in progress
    /// at the moment.
    #[boxed]
    pub async fn delete_webhook(
        &self,
        organization: OrganizationId,
        id: WebhookId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "UPDATE webhooks SET deleted_at = $3, secret = '', url = '' \
                   WHERE organization = $1 AND id = $2 AND deleted_at IS NULL";
        let deleted = transaction.execute(sql, values![organization.0, id.0, self.now_ms()]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
            self.inner.delivery_notifier.notify([id]);
        }
        Ok(deleted)
    }
}

fn events_text(events: &[EventKind]) -> String {
    let names: Vec<&str> = events.iter().map(|kind| kind.name()).collect();
    serde_json::json!(names).to_string()
}

fn repositories_text(repositories: Option<&[RepositoryId]>) -> String {
    let ids = repositories.map(|ids| ids.iter().map(|id| id.0).collect::<Vec<i64>>());
    serde_json::json!(ids).to_string()
}

fn webhook(row: &Row) -> Result<WebhookRow, StoreError> {
    let mut columns = row.columns();
    let (id, organization) = (WebhookId(columns.int("id")?), OrganizationId(columns.int("organization")?));
    let url = columns.text("url")?;
    let events = kinds_of(id, &columns.text("events")?)?;
    let repositories = repositories_of(id, &columns.text("repositories")?)?;
    Ok(WebhookRow {
        id,
        organization,
        url,
        events,
        repositories,
        active: columns.text("state")? == "active",
        paused_at: columns.opt_int("paused_at")?,
        paused_because: columns.opt_text("paused_because")?,
        full_at: columns.opt_int("full_at")?,
        created_by: columns.text("created_by")?,
        created_at: columns.int("created_at")?,
    })
}
