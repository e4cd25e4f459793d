//! Members of teams. A membership is manual, or external if an identity provider or a SCIM client
//! made it.

use crate::accounts::event::remember;
use crate::accounts::rows::member::{MemberRow, member, member_columns};
use crate::accounts::rows::team::TeamRow;
use crate::accounts::teams::lock_as_read;
use crate::accounts::{AuditEvent, MemberChange, members};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::{MemberId, TeamId, now_ms};
use crate::store::Store;

/// Origin of a membership in a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembershipSource {
    /// A person added the member.
    Manual,
    /// An identity provider or a SCIM client added the member.
    External,
}

impl MembershipSource {
    /// Name in the API: `manual` or `external`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MembershipSource::Manual => "manual",
            MembershipSource::External => "external",
        }
    }

    pub(super) fn read(name: &str) -> Result<MembershipSource, StoreError> {
        match name {
            "manual" => Ok(MembershipSource::Manual),
            "external" => Ok(MembershipSource::External),
            _ => Err(StoreError::Corrupt(format!("the source of a membership: {name:?}"))),
        }
    }
}

/// A member of a team.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TeamMember {
    pub member: MemberRow,
    pub source: MembershipSource,
}

impl Store {
    /// Lists at most `limit` members of a team by their creation time, after the identifier
    /// `after`.
    #[boxed]
    pub async fn team_members(
        &self,
        team: TeamId,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<TeamMember>, StoreError> {
        let sql = format!(
            "SELECT {}, i.source FROM team_members i JOIN members m ON m.id = i.member \
             WHERE i.team = $1 AND i.member > $2 ORDER BY i.member LIMIT $3",
            member_columns("m")
        );
        let after = after.map_or(i64::MIN, |after| after.0);
        let rows = self.inner.db.fetch(sql, values![team.0, after, i64::from(limit)]).await?;
        let read = |row: &Row| {
            let source = MembershipSource::read(&row.columns().text("source")?)?;
            Ok(TeamMember { member: member(&mut row.columns_of("m"))?, source })
        };
        rows.iter().map(read).collect()
    }

    /// Adds a member to a team. Does nothing if it is a member already, except that an external
    /// membership becomes manual if `source` is manual. Returns `Changed` if the team's permissions
    /// changed since it was read, or if the team or the member no longer exists.
    #[boxed]
    pub async fn add_team_member(
        &self,
        read: &TeamRow,
        id: MemberId,
        source: MembershipSource,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let found = members::lock(&mut transaction, &[id]).await?;
        let is_there = found.iter().any(|member| member.organization == read.organization);
        if !is_there || !lock_as_read(&mut transaction, read).await? {
            return Ok(MemberChange::Changed);
        }
        if add(&mut transaction, read.id, id, source).await? {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(MemberChange::Done)
    }

    /// Removes a member from a team. Returns false if it is not a member. In that case, too, waits
    /// until every server has seen an earlier removal.
    #[boxed]
    pub async fn remove_team_member(
        &self,
        read: &TeamRow,
        id: MemberId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let removed = remove(&mut transaction, read.id, id).await?;
        if removed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        } else {
            drop(transaction);
            self.announce_again(format!("m{}", id.0)).await?;
        }
        Ok(removed)
    }

    /// Lists all teams of a member by creation time.
    #[boxed]
    pub async fn teams_of_member(&self, id: MemberId) -> Result<Vec<TeamRow>, StoreError> {
        let condition = "te.id IN (SELECT i.team FROM team_members i WHERE i.member = $1) ORDER BY te.id";
        self.teams(condition, values![id.0]).await
    }

    /// Makes exactly these teams the manual memberships of a member. External memberships in other
    /// teams stay. Returns `Changed` if the permissions of one of the teams changed since it was
    /// read, or if a team or the member no longer exists.
    #[boxed]
    pub async fn set_teams_of_member(
        &self,
        of: &MemberRow,
        teams: &[TeamRow],
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if members::lock(&mut transaction, &[of.id]).await?.is_empty() {
            return Ok(MemberChange::Changed);
        }
        // Locks in a fixed order, so that two transactions that lock the same teams cannot
        // deadlock.
        let mut teams: Vec<&TeamRow> = teams.iter().collect();
        teams.sort_unstable_by_key(|team| team.id);
        teams.dedup_by_key(|team| team.id);
        for team in &teams {
            if team.organization != of.organization || !lock_as_read(&mut transaction, team).await? {
                return Ok(MemberChange::Changed);
            }
        }
        for (id, source) in memberships(&mut transaction, of.id).await? {
            if source == MembershipSource::Manual && !teams.iter().any(|team| team.id == id) {
                remove(&mut transaction, id, of.id).await?;
            }
        }
        for team in teams {
            add(&mut transaction, team.id, of.id, MembershipSource::Manual).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(MemberChange::Done)
    }
}

/// Adds a member to a team. Returns whether that changed a row.
pub(super) async fn add(
    transaction: &mut Transaction,
    team: TeamId,
    member: MemberId,
    source: MembershipSource,
) -> Result<bool, StoreError> {
    let insert = "INSERT INTO team_members (team, member, source, created_at) VALUES ($1, $2, $3, $4) \
                  ON CONFLICT (team, member) DO UPDATE SET source = 'manual' \
                  WHERE excluded.source = 'manual' AND team_members.source = 'external'";
    Ok(transaction.execute(insert, values![team.0, member.0, source.name(), now_ms()]).await? == 1)
}

/// Removes a member from a team. Returns whether that changed a row.
pub(super) async fn remove(
    transaction: &mut Transaction,
    team: TeamId,
    member: MemberId,
) -> Result<bool, StoreError> {
    let delete = "DELETE FROM team_members WHERE team = $1 AND member = $2";
    Ok(transaction.execute(delete, values![team.0, member.0]).await? == 1)
}

async fn memberships(
    transaction: &mut Transaction,
    member: MemberId,
) -> Result<Vec<(TeamId, MembershipSource)>, StoreError> {
    let list = "SELECT team, source FROM team_members WHERE member = $1 ORDER BY team";
    let rows = transaction.fetch(list, values![member.0]).await?;
    let read = |row: &Row| {
        let mut columns = row.columns();
        Ok((TeamId(columns.int("team")?), MembershipSource::read(&columns.text("source")?)?))
    };
    rows.iter().map(read).collect()
}
