//! Creation, listing and changes of repositories.

use serde_json::json;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::repository::{REPOSITORY_COLUMNS, RepositoryRow, repository};
use crate::boxed;
use crate::db::{Row, Transaction, Value, columns_of, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, new_id, now_ms};
use crate::store::Store;
use crate::webhooks::{EventKind, NewWebhookEvent, write_event};

/// Fields of a repository to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRepository {
    pub name: String,
    /// Name of the format, whose plugin serves it.
    pub format: String,
    pub kind: String,
    /// True if it can be read without a credential.
    pub public: bool,
    /// Settings as a JSON object.
    pub settings: String,
    /// Upstream address of a proxy.
    pub upstream: Option<String>,
    /// Members of a group, in order.
    pub members: Vec<RepositoryId>,
}

impl Store {
    /// Creates a repository. Returns `None` if its name is in use.
    #[boxed]
    pub async fn create_repository(
        &self,
        organization: OrganizationId,
        repository: NewRepository,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RepositoryRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let made = insert(&mut transaction, organization, repository).await?;
        if let Some(made) = &made {
            let by = audit.as_ref().map_or_else(String::new, |event| event.actor.clone());
            let hooks = write_event(&mut transaction, organization, created(made, &by)).await?;
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
            self.inner.delivery_notifier.notify(hooks);
        }
        Ok(made)
    }

    /// Returns the repository with this identifier in this organization.
    #[boxed]
    pub async fn find_repository(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
    ) -> Result<Option<RepositoryRow>, StoreError> {
        let found =
            self.repositories("r.organization = $1 AND r.id = $2", values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the repositories with these identifiers, in the order of `ids`; leaves out missing
    /// ones.
    #[boxed]
    pub async fn find_repositories(
        &self,
        organization: OrganizationId,
        ids: &[RepositoryId],
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut values = values![organization.0];
        values.extend(ids.iter().map(|id| Value::from(id.0)));
        let names: Vec<String> = (2..values.len() + 1).map(|at| format!("${at}")).collect();
        let condition = format!("r.organization = $1 AND r.id IN ({})", names.join(","));
        let found = self.repositories(&condition, values).await?;
        Ok(ids.iter().filter_map(|id| found.iter().find(|row| row.id == *id).cloned()).collect())
    }

    /// Lists at most `limit` repositories by creation time, after the identifier `after`.
    #[boxed]
    pub async fn list_repositories(
        &self,
        organization: OrganizationId,
        after: Option<RepositoryId>,
        limit: u32,
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let values = values![organization.0, after, i64::from(limit)];
        self.repositories("r.organization = $1 AND r.id > $2 ORDER BY r.id LIMIT $3", values).await
    }

    /// Lists the formats in use in this organization, or in all organizations, each with its number
    /// of repositories.
    #[boxed]
    pub async fn formats_in_use(
        &self,
        organization: Option<OrganizationId>,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        let (condition, values) = match organization {
            Some(organization) => ("AND organization = $1", values![organization.0]),
            None => ("", vec![]),
        };
        let sql = format!(
            "SELECT format, COUNT(*) AS repositories FROM repositories WHERE deleted_at IS NULL {condition} \
             GROUP BY format ORDER BY format"
        );
        let rows = self.inner.db.fetch_uncounted(sql, values).await?;
        let read = |row: &Row| {
            let mut columns = row.columns();
            Ok((columns.text("format")?, columns.unsigned("repositories")?))
        };
        rows.iter().map(read).collect()
    }

    /// Stores `public`, `settings`, `upstream` and `members` of the row. Returns false, and changes
    /// nothing, if its `settings_revision` is outdated. With `forget_credentials`, it also deletes
    /// the upstream credentials.
    #[boxed]
    pub async fn update_repository(
        &self,
        row: &RepositoryRow,
        forget_credentials: bool,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE repositories SET public = $4, settings = $5, upstream = $6, members = $7, \
                      settings_revision = settings_revision + 1 \
                      WHERE organization = $1 AND id = $2 AND settings_revision = $3 AND deleted_at IS NULL";
        let values = values![
            row.organization.0,
            row.id.0,
            signed(row.settings_revision),
            row.public,
            &*row.settings,
            row.upstream.as_deref(),
            members_json(&row.members),
        ];
        let changed = transaction.execute(update, values).await? == 1;
        if changed {
            if forget_credentials {
                let forget = "DELETE FROM upstream_credentials WHERE repository = $1";
                transaction.execute(forget, values![row.id.0]).await?;
            }
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    /// Returns the groups that have this repository as a member.
    #[boxed]
    pub async fn groups_with(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let condition = "r.organization = $1 AND r.members <> '[]' ORDER BY r.id";
        let groups = self.repositories(condition, values![organization.0]).await?;
        Ok(groups.into_iter().filter(|group| group.members.contains(&id)).collect())
    }

    /// Returns the identifiers of the groups that have this repository as a member.
    #[boxed]
    pub async fn groups_of(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
    ) -> Result<Vec<RepositoryId>, StoreError> {
        let groups = self.groups_with(organization, id).await?;
        Ok(groups.into_iter().map(|group| group.id).collect())
    }

    pub(super) async fn repositories(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let columns = columns_of("r", REPOSITORY_COLUMNS);
        let sql = format!("SELECT {columns} FROM repositories r WHERE r.deleted_at IS NULL AND {condition}");
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| repository(&mut row.columns_of("r"))).collect()
    }
}

/// Returns `None` if the name is in use.
async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    repository: NewRepository,
) -> Result<Option<RepositoryRow>, StoreError> {
    let NewRepository { name, format, kind, public, settings, upstream, members } = repository;
    let (id, created_at) = (RepositoryId(new_id()), now_ms());
    let insert = "INSERT INTO repositories (id, organization, name, format, kind, public, settings, upstream, members, \
                  revision, settings_revision, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10) \
                  ON CONFLICT (organization, name) DO NOTHING";
    let values = values![
        id.0,
        organization.0,
        name.as_str(),
        format.as_str(),
        kind.as_str(),
        public,
        settings.as_str(),
        upstream.as_deref(),
        members_json(&members),
        created_at,
    ];
    if transaction.execute(insert, values).await? == 0 {
        return Ok(None);
    }
    let (settings, revision, settings_revision) = (settings.into(), 0, 0);
    Ok(Some(RepositoryRow {
        id,
        organization,
        name,
        format,
        kind,
        public,
        settings,
        upstream,
        members,
        revision,
        settings_revision,
        created_at,
    }))
}

fn members_json(members: &[RepositoryId]) -> String {
    let ids: Vec<String> = members.iter().map(RepositoryId::to_string).collect();
    format!("[{}]", ids.join(","))
}

fn created(row: &RepositoryRow, by: &str) -> NewWebhookEvent {
    let described =
        json!({"id": row.id.to_string(), "name": row.name, "format": row.format, "kind": row.kind});
    let data = json!({"repository": described, "created_by": by});
    NewWebhookEvent {
        kind: EventKind::RepositoryCreated,
        repository: Some(row.id),
        about: ("repository", row.id.0),
        subject: row.name.clone(),
        data,
    }
}
