//! Teams that members join and leave by the groups of an identity provider.

use crate::accounts::event::remember;
use crate::accounts::rows::texts::read_list;
use crate::accounts::team_members::{MembershipSource, add, remove};
use crate::accounts::{AuditEvent, MemberRow, members};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::TeamId;
use crate::store::Store;

/// Teams with external groups, each with the source of the member's membership.
const TEAMS: &str = "SELECT te.id, te.external_groups, \
    (SELECT i.source FROM team_members i WHERE i.team = te.id AND i.member = $2) AS source \
    FROM teams te WHERE te.organization = $1 AND te.external_groups <> '[]' ORDER BY te.id";

/// Difference between the teams of a member and those that its groups give it.
#[derive(Default)]
struct Moves {
    joined: Vec<TeamId>,
    left: Vec<TeamId>,
}

impl Moves {
    fn between(rows: &[Row], groups: &[String]) -> Result<Moves, StoreError> {
        let mut moves = Moves::default();
        for row in rows {
            let mut columns = row.columns();
            let id = TeamId(columns.int("id")?);
            let named = read_list(&columns.text("external_groups")?, "external_groups")?;
            let source = columns.opt_text("source")?;
            let source = source.as_deref().map(MembershipSource::read).transpose()?;
            match (named.iter().any(|group| groups.contains(group)), source) {
                (true, None) => moves.joined.push(id),
                (false, Some(MembershipSource::External)) => moves.left.push(id),
                _ => {}
            }
        }
        Ok(moves)
    }

    fn is_empty(&self) -> bool {
        self.joined.is_empty() && self.left.is_empty()
    }

    /// Describes the moves for the audit log, as a JSON object.
    fn detail(&self) -> String {
        let ids = |teams: &[TeamId]| teams.iter().map(ToString::to_string).collect::<Vec<String>>();
        serde_json::json!({"joined": ids(&self.joined), "left": ids(&self.left)}).to_string()
    }
}

impl Store {
    /// Makes a member join the teams whose external groups name one of these groups, and leave the
    /// other teams that have external groups. Manual memberships stay, and so do all memberships of
    /// teams without external groups. Returns whether a membership changed. The audit event is
    /// written only then, and gets the joined and left teams as its detail.
    #[boxed]
    pub async fn follow_external_groups(
        &self,
        of: &MemberRow,
        groups: &[String],
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        // Most sign-ins change nothing, and then need no transaction.
        let rows = self.inner.db.fetch(TEAMS, values![of.organization.0, of.id.0]).await?;
        if Moves::between(&rows, groups)?.is_empty() {
            return Ok(false);
        }
        let mut transaction = self.inner.db.begin().await?;
        if members::lock(&mut transaction, &[of.id]).await?.is_empty() {
            return Ok(false);
        }
        let locked = format!("{TEAMS}{}", transaction.for_update());
        let rows = transaction.fetch(locked, values![of.organization.0, of.id.0]).await?;
        let moves = Moves::between(&rows, groups)?;
        if moves.is_empty() {
            return Ok(false);
        }
        for team in &moves.joined {
            add(&mut transaction, *team, of.id, MembershipSource::External).await?;
        }
        for team in &moves.left {
            remove(&mut transaction, *team, of.id).await?;
        }
        let audit = audit.map(|event| AuditEvent { detail: moves.detail(), ..event });
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
