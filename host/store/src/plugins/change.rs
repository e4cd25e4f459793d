//! Changes of active plugins. Each change is one transaction that first increments the number of
//! changes, so that no two changes overlap.

use serde_json::json;

use super::PLUGIN_HISTORY;
use super::components::{NewComponent, keep};
use super::rows::{FormatPlugin, next_number};
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use crate::webhooks::{EventKind, NewWebhookEvent, write_event};

/// A change of the plugin that a format runs.
#[derive(Clone, Debug, Default)]
pub struct FormatChange {
    /// New row of the format; its history is cut to the limit.
    pub format: FormatPlugin,
    /// Number of changes on which the decision is based.
    pub based_on: i64,
    /// A new component that is stored with this change, because the change refers to it.
    pub taken_in: Option<NewComponent>,
}

impl Store {
    /// Writes the plugin that a format runs. Returns the new number of changes, or `None` if
    /// another change came first.
    #[boxed]
    pub async fn change_format_plugin(
        &self,
        change: FormatChange,
        audit: Option<AuditEvent>,
    ) -> Result<Option<i64>, StoreError> {
        let FormatChange { format: FormatPlugin { format, active, mut history }, based_on, taken_in } =
            change;
        let organization = self.first_organization().await?;
        let mut transaction = self.inner.db.begin().await?;
        let number = next_number(&mut transaction).await?;
        if number != based_on.saturating_add(1) {
            return Ok(None);
        }
        if let Some(component) = taken_in {
            keep(&mut transaction, component, self.now_ms()).await?;
        }
        let surplus = history.len().saturating_sub(PLUGIN_HISTORY);
        history.drain(..surplus);
        let history = serde_json::to_string(&history)
            .map_err(|error| StoreError::Invalid(format!("a format's history: {error}")))?;
        let find = "SELECT active FROM plugin_formats WHERE format = $1";
        let before = transaction.fetch_one(find, values![format.as_str()]).await?;
        let before = before.map_or(Ok(None), |row| row.columns().opt_text("active"))?;
        let hooks = match organization {
            Some(organization) if before != active => {
                let by = audit.as_ref().map_or("", |event| event.actor.as_str());
                let event = NewWebhookEvent {
                    kind: EventKind::PluginActivated,
                    repository: None,
                    about: ("plugins", 0),
                    subject: format.clone(),
                    data: json!({"format": format, "digest": active, "before": before, "activated_by": by}),
                };
                write_event(&mut transaction, organization, event).await?
            }
            _ => Vec::new(),
        };
        let set = "INSERT INTO plugin_formats (format, active, history) VALUES ($1, $2, $3) \
                   ON CONFLICT (format) DO UPDATE SET active = excluded.active, history = excluded.history";
        transaction.execute(set, values![format.as_str(), active, history]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(Some(number))
    }

    /// Pins a repository to a component, or removes the pin if `digest` is `None`. Returns false if
    /// the repository does not exist.
    #[boxed]
    pub async fn pin_repository(
        &self,
        organization: OrganizationId,
        repository: RepositoryId,
        digest: Option<&str>,
        taken_in: Option<NewComponent>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        next_number(&mut transaction).await?;
        if let Some(component) = taken_in {
            keep(&mut transaction, component, self.now_ms()).await?;
        }
        let set =
            "UPDATE repositories SET plugin = $3 WHERE organization = $1 AND id = $2 AND deleted_at IS NULL";
        if transaction.execute(set, values![organization.0, repository.0, digest]).await? == 0 {
            return Ok(false);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
