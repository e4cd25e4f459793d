//! Subscribers and groups of subscribers, which hold access keys, and the repositories given to
//! them.

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::boxed;
use crate::db::{Columns, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{KeyOwnerId, OrganizationId, RepositoryId, new_id, now_ms};
use crate::store::Store;

/// Kind of an owner of access keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyOwnerKind {
    Subscriber,
    Group,
}

impl KeyOwnerKind {
    /// Returns the name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KeyOwnerKind::Subscriber => "subscriber",
            KeyOwnerKind::Group => "subscriber_group",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyOwnerRow {
    pub id: KeyOwnerId,
    pub organization: OrganizationId,
    /// Display name, which is not unique.
    pub name: String,
    /// E-mail address of a subscriber, if known.
    pub email: Option<String>,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Repositories given directly to this owner.
    pub repositories: Vec<RepositoryId>,
    /// Members of a group; empty for a subscriber.
    pub subscribers: Vec<KeyOwnerId>,
}

/// Fields of an owner of access keys to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewKeyOwner {
    pub kind: KeyOwnerKind,
    pub name: String,
    /// E-mail address of a subscriber.
    pub email: Option<String>,
    pub repositories: Vec<RepositoryId>,
    pub subscribers: Vec<KeyOwnerId>,
}

/// Changes to an owner of access keys. A field that is `None` stays unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyOwnerChange {
    pub name: Option<String>,
    /// `Some(None)` removes the address.
    pub email: Option<Option<String>>,
    /// New complete list of repositories.
    pub repositories: Option<Vec<RepositoryId>>,
    /// New complete list of the group's members.
    pub subscribers: Option<Vec<KeyOwnerId>>,
}

impl Store {
    /// Creates a subscriber or a group.
    #[boxed]
    pub async fn create_key_owner(
        &self,
        organization: OrganizationId,
        new: NewKeyOwner,
        audit: Option<AuditEvent>,
    ) -> Result<KeyOwnerRow, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let (id, created_at) = (KeyOwnerId(new_id()), now_ms());
        let insert = "INSERT INTO key_owners (id, organization, kind, name, email, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let (name, email) = (new.name.as_str(), new.email.as_deref());
        let values = values![id.0, organization.0, new.kind.name(), name, email, created_at];
        transaction.execute(insert, values).await?;
        insert_repositories(&mut transaction, id, new.repositories).await?;
        insert_subscribers(&mut transaction, id, new.subscribers).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        let made = self.find_key_owner(organization, new.kind, id).await?;
        made.ok_or_else(|| StoreError::Corrupt("the key owner that was just created is missing".to_owned()))
    }

    /// Returns the subscriber or group with this identifier in this organization.
    #[boxed]
    pub async fn find_key_owner(
        &self,
        organization: OrganizationId,
        kind: KeyOwnerKind,
        id: KeyOwnerId,
    ) -> Result<Option<KeyOwnerRow>, StoreError> {
        let condition = "o.organization = $1 AND o.kind = $2 AND o.id = $3";
        let found = self.key_owners(condition, values![organization.0, kind.name(), id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Filters these identifiers, and returns the ones of subscribers of the organization.
    #[boxed]
    pub async fn find_subscribers(
        &self,
        organization: OrganizationId,
        ids: &[KeyOwnerId],
    ) -> Result<Vec<KeyOwnerId>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut values = values![organization.0, KeyOwnerKind::Subscriber.name()];
        values.extend(ids.iter().map(|id| Value::from(id.0)));
        let names: Vec<String> = (3..values.len() + 1).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT id FROM key_owners WHERE organization = $1 AND kind = $2 AND id IN ({})",
            names.join(",")
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| row.columns().int("id").map(KeyOwnerId)).collect()
    }

    /// Lists at most `limit` subscribers or groups by creation time, after the identifier `after`.
    #[boxed]
    pub async fn list_key_owners(
        &self,
        organization: OrganizationId,
        kind: KeyOwnerKind,
        after: Option<KeyOwnerId>,
        limit: u32,
    ) -> Result<Vec<KeyOwnerRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let condition = "o.organization = $1 AND o.kind = $2 AND o.id > $3 ORDER BY o.id LIMIT $4";
        self.key_owners(condition, values![organization.0, kind.name(), after, i64::from(limit)]).await
    }

    /// Changes a subscriber or group. Returns `None` if it does not exist.
    #[boxed]
    pub async fn change_key_owner(
        &self,
        organization: OrganizationId,
        kind: KeyOwnerKind,
        id: KeyOwnerId,
        change: KeyOwnerChange,
        audit: Option<AuditEvent>,
    ) -> Result<Option<KeyOwnerRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let KeyOwnerChange { name, email, repositories, subscribers } = change;
        let update = "UPDATE key_owners SET name = COALESCE($4, name), \
                      email = CASE WHEN $5 = 1 THEN $6 ELSE email END \
                      WHERE organization = $1 AND kind = $2 AND id = $3";
        let new_email = email.clone().flatten();
        let values = values![organization.0, kind.name(), id.0, name, email.is_some(), new_email];
        if transaction.execute(update, values).await? == 0 {
            return Ok(None);
        }
        if let Some(repositories) = repositories {
            let take = "DELETE FROM key_owner_repositories WHERE owner = $1";
            transaction.execute(take, values![id.0]).await?;
            insert_repositories(&mut transaction, id, repositories).await?;
        }
        if let Some(subscribers) = subscribers {
            let part = "DELETE FROM subscriber_groups WHERE subscriber_group = $1";
            transaction.execute(part, values![id.0]).await?;
            insert_subscribers(&mut transaction, id, subscribers).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_key_owner(organization, kind, id).await
    }

    /// Deletes a subscriber or group with its access keys. Returns false if it does not exist.
    #[boxed]
    pub async fn delete_key_owner(
        &self,
        organization: OrganizationId,
        kind: KeyOwnerKind,
        id: KeyOwnerId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let delete = "DELETE FROM key_owners WHERE organization = $1 AND kind = $2 AND id = $3";
        let deleted = transaction.execute(delete, values![organization.0, kind.name(), id.0]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }

    /// Returns every repository that a key of this owner reaches: the repositories given to the
    /// owner or to one of its groups.
    #[boxed]
    pub async fn key_reach(&self, owner: KeyOwnerId) -> Result<Vec<RepositoryId>, StoreError> {
        let reach = "SELECT repository FROM key_owner_repositories WHERE owner = $1 \
                     UNION SELECT y.repository FROM subscriber_groups g \
                     JOIN key_owner_repositories y ON y.owner = g.subscriber_group WHERE g.subscriber = $1";
        let rows = self.inner.db.fetch(reach, values![owner.0]).await?;
        rows.iter().map(|row| row.columns().int("repository").map(RepositoryId)).collect()
    }

    async fn key_owners(&self, condition: &str, values: Vec<Value>) -> Result<Vec<KeyOwnerRow>, StoreError> {
        let sql = format!(
            "SELECT o.id, o.organization, o.name, o.email, o.created_at FROM key_owners o WHERE {condition}"
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        let mut owners: Vec<KeyOwnerRow> =
            rows.iter().map(|row| key_owner(&mut row.columns())).collect::<Result<_, _>>()?;
        if owners.is_empty() {
            return Ok(owners);
        }
        let ids: Vec<Value> = owners.iter().map(|owner| Value::from(owner.id.0)).collect();
        let names: Vec<String> = (1..ids.len() + 1).map(|at| format!("${at}")).collect();
        // One statement reads both lists.
        let of = names.join(",");
        let sql = format!(
            "SELECT owner, CAST(0 AS BIGINT) AS is_subscriber, repository AS reached FROM key_owner_repositories WHERE owner IN ({of}) \
             UNION ALL SELECT subscriber_group, CAST(1 AS BIGINT), subscriber FROM subscriber_groups \
             WHERE subscriber_group IN ({of}) ORDER BY reached"
        );
        for row in self.inner.db.fetch(sql, ids).await? {
            let mut columns = row.columns();
            let owner = KeyOwnerId(columns.int("owner")?);
            let (is_subscriber, reached) = (columns.bool("is_subscriber")?, columns.int("reached")?);
            let Some(owner) = owners.iter_mut().find(|row| row.id == owner) else { continue };
            if is_subscriber {
                owner.subscribers.push(KeyOwnerId(reached));
            } else {
                owner.repositories.push(RepositoryId(reached));
            }
        }
        Ok(owners)
    }
}

fn key_owner(columns: &mut Columns<'_>) -> Result<KeyOwnerRow, StoreError> {
    Ok(KeyOwnerRow {
        id: KeyOwnerId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        name: columns.text("name")?,
        email: columns.opt_text("email")?,
        created_at: columns.int("created_at")?,
        repositories: Vec::new(),
        subscribers: Vec::new(),
    })
}

async fn insert_repositories(
    transaction: &mut Transaction,
    owner: KeyOwnerId,
    mut repositories: Vec<RepositoryId>,
) -> Result<(), StoreError> {
    repositories.sort_unstable();
    repositories.dedup();
    let rows = repositories.into_iter().map(|repository| [Value::from(owner.0), Value::from(repository.0)]);
    let before = "INSERT INTO key_owner_repositories (owner, repository) VALUES ";
    transaction.execute_rows(before, rows.collect(), "").await?;
    Ok(())
}

async fn insert_subscribers(
    transaction: &mut Transaction,
    group: KeyOwnerId,
    mut subscribers: Vec<KeyOwnerId>,
) -> Result<(), StoreError> {
    subscribers.sort_unstable();
    subscribers.dedup();
    let rows = subscribers.into_iter().map(|subscriber| [Value::from(subscriber.0), Value::from(group.0)]);
    let before = "INSERT INTO subscriber_groups (subscriber, subscriber_group) VALUES ";
    transaction.execute_rows(before, rows.collect(), "").await?;
    Ok(())
}
