//! Teams. The members of a team have its permissions besides their own.

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::organizations::lock_organization;
use crate::accounts::rows::team::{TeamRow, team, team_columns};
use crate::accounts::rows::texts::list_json;
use crate::boxed;
use crate::db::{Row, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, TeamId, new_id, now_ms};
use crate::store::Store;

/// Fields of a team to be created, or of a team after a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTeam {
    /// Name, unique in the organization.
    pub name: String,
    pub description: String,
    /// Permissions as the API's JSON.
    pub permissions: String,
    /// Groups of identity providers. A member of one of them joins the team at sign-in.
    pub external_groups: Vec<String>,
    /// Identifier that a SCIM client gave the team.
    pub external_id: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TeamChange {
    /// The team after the change.
    Done(Box<TeamRow>),
    /// Another team of the organization has the name. The call changed nothing.
    NameTaken,
    /// The team was changed or deleted since it was read. The call changed nothing.
    Changed,
}

impl Store {
    /// Creates a team without members. Returns `None` if another team has the name.
    #[boxed]
    pub async fn create_team(
        &self,
        organization: OrganizationId,
        new: NewTeam,
        audit: Option<AuditEvent>,
    ) -> Result<Option<TeamRow>, StoreError> {
        let NewTeam { name, description, permissions, external_groups, external_id } = new;
        let (id, created_at) = (TeamId(new_id()), now_ms());
        let row = TeamRow {
            id,
            organization,
            name,
            description,
            permissions,
            external_groups,
            external_id,
            members: 0,
            created_at,
        };
        let mut transaction = self.inner.db.begin().await?;
        lock_organization(&mut transaction, organization).await?;
        let insert = "INSERT INTO teams (id, organization, name, description, permissions, external_groups, \
                      external_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
        let values = values![
            row.id.0,
            organization.0,
            row.name.as_str(),
            row.description.as_str(),
            row.permissions.as_str(),
            list_json(&row.external_groups),
            row.external_id.as_deref(),
            created_at,
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(row))
    }

    /// Returns the team with this identifier in this organization.
    #[boxed]
    pub async fn find_team(
        &self,
        organization: OrganizationId,
        id: TeamId,
    ) -> Result<Option<TeamRow>, StoreError> {
        let found = self.teams("te.organization = $1 AND te.id = $2", values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the team with this name in this organization.
    #[boxed]
    pub async fn find_team_by_name(
        &self,
        organization: OrganizationId,
        name: &str,
    ) -> Result<Option<TeamRow>, StoreError> {
        let found =
            self.teams("te.organization = $1 AND te.name = $2", values![organization.0, name]).await?;
        Ok(found.into_iter().next())
    }

    /// Lists at most `limit` teams by creation time, after the identifier `after`.
    #[boxed]
    pub async fn list_teams(
        &self,
        organization: OrganizationId,
        after: Option<TeamId>,
        limit: u32,
    ) -> Result<Vec<TeamRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let values = values![organization.0, after, i64::from(limit)];
        self.teams("te.organization = $1 AND te.id > $2 ORDER BY te.id LIMIT $3", values).await
    }

    /// Number of teams of the organization.
    #[boxed]
    pub async fn count_teams(&self, organization: OrganizationId) -> Result<u64, StoreError> {
        let count = "SELECT COUNT(*) AS teams FROM teams WHERE organization = $1";
        let row = self.inner.db.fetch_one(count, values![organization.0]).await?;
        row.map_or(Ok(0), |row| row.columns().unsigned("teams"))
    }

    /// Changes a team if it is unchanged since it was read, apart from its members. If no external
    /// group is left and no SCIM client manages the team, members that joined by an external group
    /// leave it.
    #[boxed]
    pub async fn set_team(
        &self,
        read: &TeamRow,
        new: NewTeam,
        audit: Option<AuditEvent>,
    ) -> Result<TeamChange, StoreError> {
        let NewTeam { name, description, permissions, external_groups, external_id } = new;
        let mut transaction = self.inner.db.begin().await?;
        lock_organization(&mut transaction, read.organization).await?;
        let taken = "SELECT id FROM teams WHERE organization = $1 AND name = $2 AND id <> $3";
        let taken_by = values![read.organization.0, name.as_str(), read.id.0];
        if transaction.fetch_one(taken, taken_by).await?.is_some() {
            return Ok(TeamChange::NameTaken);
        }
        let update = "UPDATE teams SET name = $8, description = $9, permissions = $10, external_groups = $11, \
                      external_id = $12 WHERE organization = $1 AND id = $2 AND name = $3 AND description = $4 \
                      AND permissions = $5 AND external_groups = $6 AND external_id IS NOT DISTINCT FROM $7";
        let values = values![
            read.organization.0,
            read.id.0,
            read.name.as_str(),
            read.description.as_str(),
            read.permissions.as_str(),
            list_json(&read.external_groups),
            read.external_id.as_deref(),
            name.as_str(),
            description.as_str(),
            permissions.as_str(),
            list_json(&external_groups),
            external_id.as_deref(),
        ];
        if transaction.execute(update, values).await? == 0 {
            return Ok(TeamChange::Changed);
        }
        if external_groups.is_empty() && !read.external_groups.is_empty() && external_id.is_none() {
            let leave = "DELETE FROM team_members WHERE team = $1 AND source = 'external'";
            transaction.execute(leave, values![read.id.0]).await?;
        }
        let sql = format!("SELECT {} FROM teams te WHERE te.id = $1", team_columns());
        let row = transaction.fetch_one(sql, values![read.id.0]).await?;
        let Some(row) = row else { return Ok(TeamChange::Changed) };
        let row = team(&mut row.columns_of("te"))?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(TeamChange::Done(Box::new(row)))
    }

    /// Deletes a team; its members lose its permissions. Returns false if it does not exist.
    #[boxed]
    pub async fn delete_team(
        &self,
        organization: OrganizationId,
        id: TeamId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let delete = "DELETE FROM teams WHERE organization = $1 AND id = $2";
        let deleted = transaction.execute(delete, values![organization.0, id.0]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        } else {
            drop(transaction);
            // The server that deleted the team may have stopped before it notified the others.
            self.announce_again(format!("g{}", organization.0)).await?;
        }
        Ok(deleted)
    }

    pub(super) async fn teams(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<TeamRow>, StoreError> {
        let sql = format!("SELECT {} FROM teams te WHERE {condition}", team_columns());
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row: &Row| team(&mut row.columns_of("te"))).collect()
    }
}

/// Locks a team until the transaction ends. Returns whether its permissions are unchanged since it
/// was read. Lock members before teams.
pub(super) async fn lock_as_read(transaction: &mut Transaction, read: &TeamRow) -> Result<bool, StoreError> {
    let lock = format!(
        "SELECT permissions FROM teams WHERE organization = $1 AND id = $2{}",
        transaction.for_update()
    );
    let row = transaction.fetch_one(lock, values![read.organization.0, read.id.0]).await?;
    let permissions = row.map(|row| row.columns().text("permissions")).transpose()?;
    Ok(permissions.is_some_and(|permissions| permissions == read.permissions))
}
