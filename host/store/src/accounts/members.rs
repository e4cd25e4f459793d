use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::last_owner::is_last_owner;
use crate::accounts::rows::member::{MemberKind, MemberRow, member, member_columns};
use crate::accounts::token_events;
use crate::boxed;
use crate::db::{Row, Transaction, Value, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, TokenId, new_id, now_ms};
use crate::store::Store;
use crate::webhooks::Listeners;

/// Fields of a member to be created.
#[derive(Clone)]
pub struct NewMember {
    /// E-mail address in lower case.
    pub email: String,
    pub name: String,
    pub password_hash: String,
    /// Permissions as the API's JSON.
    pub permissions: String,
}

impl fmt::Debug for NewMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMember").field("email", &self.email).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberChange {
    Done,
    /// The member was changed or deleted since it was read. The call changed nothing.
    Changed,
    /// Refused: this would remove the last owner.
    LastOwner,
}

impl Store {
    /// Creates a member. Returns `None` if the e-mail address is in use in this organization.
    #[boxed]
    pub async fn create_member(
        &self,
        organization: OrganizationId,
        member: NewMember,
        audit: Option<AuditEvent>,
    ) -> Result<Option<MemberRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let made = insert(&mut transaction, organization, member).await?;
        if made.is_some() {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(made)
    }

    /// Returns the member with this identifier in this organization: a person or a service account.
    #[boxed]
    pub async fn find_member(
        &self,
        organization: OrganizationId,
        id: MemberId,
    ) -> Result<Option<MemberRow>, StoreError> {
        let found = self.members("m.organization = $1 AND m.id = $2", values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the persons with this e-mail address, at most one for each organization, ordered by
    /// organization.
    #[boxed]
    pub async fn members_by_email(&self, email: &str) -> Result<Vec<MemberRow>, StoreError> {
        self.members("m.email = $1 AND m.kind = 'person' ORDER BY m.organization", values![email]).await
    }

    /// Lists at most `limit` persons by creation time, after the identifier `after`. The list does
    /// not contain service accounts.
    #[boxed]
    pub async fn list_members(
        &self,
        organization: OrganizationId,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        self.members_of_kind(organization, MemberKind::Person, after, limit).await
    }

    pub(super) async fn members_of_kind(
        &self,
        organization: OrganizationId,
        kind: MemberKind,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let condition = "m.organization = $1 AND m.kind = $2 AND m.id > $3 ORDER BY m.id LIMIT $4";
        self.members(condition, values![organization.0, kind.name(), after, i64::from(limit)]).await
    }

    /// Sets the permissions of a member if they are unchanged since they were read. `is_owner`
    /// decides which permissions make a member an owner; an active owner must remain. A change
    /// of the permissions revokes the member's invitations, the password resets that it started,
    /// and the resets of its own password. The old permissions allowed them.
    pub async fn set_member_permissions(
        &self,
        read: &MemberRow,
        permissions: &str,
        is_owner: fn(&str) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if !is_owner(permissions) && is_last_owner(&mut transaction, read, is_owner).await? {
            return Ok(MemberChange::LastOwner);
        }
        let update =
            "UPDATE members SET permissions = $4 WHERE organization = $1 AND id = $2 AND permissions = $3";
        let values = values![read.organization.0, read.id.0, read.permissions.as_str(), permissions];
        if transaction.execute(update, values).await? == 0 {
            return Ok(MemberChange::Changed);
        }
        if read.permissions != permissions {
            end_codes(&mut transaction, read.id).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(MemberChange::Done)
    }

    /// Sets a member's password hash and ends the member's sessions. Returns false if the member
    /// does not exist.
    #[boxed]
    pub async fn set_member_password(
        &self,
        organization: OrganizationId,
        id: MemberId,
        password_hash: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let find = "SELECT id FROM members WHERE organization = $1 AND id = $2";
        let there = transaction.fetch_one(find, values![organization.0, id.0]).await?.is_some();
        if there {
            set_password(&mut transaction, id, password_hash).await?;
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(there)
    }

    /// Sets a member's name. Returns false if the member does not exist.
    #[boxed]
    pub async fn set_member_name(
        &self,
        organization: OrganizationId,
        id: MemberId,
        name: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE members SET name = $3 WHERE organization = $1 AND id = $2";
        let changed = transaction.execute(update, values![organization.0, id.0, name]).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    /// Sets a member's own password, and the name if one is given. Returns false if the stored
    /// password hash changed since it was read. Ends the member's sessions except `keep`, and
    /// everything begun with the old password.
    #[boxed]
    pub async fn change_own_password(
        &self,
        read: &MemberRow,
        password_hash: &str,
        name: Option<&str>,
        keep: &[u8; 32],
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE members SET password_hash = $4, name = COALESCE($5, name) \
                      WHERE organization = $1 AND id = $2 AND password_hash = $3";
        let values =
            values![read.organization.0, read.id.0, read.password_hash.as_str(), password_hash, name];
        if transaction.execute(update, values).await? == 0 {
            return Ok(false);
        }
        let others = "DELETE FROM sessions WHERE member = $1 AND secret_sha256 <> $2";
        transaction.execute(others, values![read.id.0, keep]).await?;
        for ended in BEGUN_WITH_A_PASSWORD {
            transaction.execute(ended, values![read.id.0]).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Deletes a member with its sessions, confirmations, resets and invitations, and revokes its
    /// tokens. The member's permissions must be unchanged since they were read. `is_owner` works as
    /// for [`Store::set_member_permissions`].
    pub async fn delete_member(
        &self,
        read: &MemberRow,
        is_owner: fn(&str) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if is_last_owner(&mut transaction, read, is_owner).await? {
            return Ok(MemberChange::LastOwner);
        }
        // The foreign keys of the schema delete the dependent rows.
        let delete = "DELETE FROM members WHERE organization = $1 AND id = $2 AND permissions = $3";
        let values = values![read.organization.0, read.id.0, read.permissions.as_str()];
        if transaction.execute(delete, values).await? == 0 {
            return Ok(MemberChange::Changed);
        }
        let revoke = "UPDATE tokens SET revoked_at = $3 WHERE organization = $1 AND owner = $2 AND revoked_at IS NULL RETURNING id";
        let values = values![read.organization.0, read.id.0, now_ms()];
        let revoked = transaction.fetch(revoke, values).await?;
        let revoked: Vec<TokenId> =
            revoked.iter().map(|row| row.columns().int("id").map(TokenId)).collect::<Result<_, _>>()?;
        let listeners = Listeners::of(&mut transaction, read.organization).await?;
        let hooks = token_events::revoked(&mut transaction, &listeners, &revoked, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(MemberChange::Done)
    }

    pub(super) async fn members(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let sql = format!("SELECT {} FROM members m WHERE {condition}", member_columns("m"));
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row: &Row| member(&mut row.columns_of("m"))).collect()
    }
}

/// Locks these members until the transaction ends and returns those that exist.
pub(super) async fn lock(
    transaction: &mut Transaction,
    ids: &[MemberId],
) -> Result<Vec<MemberRow>, StoreError> {
    let mut ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    // Locks in a fixed order, so that two transactions that lock the same members cannot deadlock.
    ids.sort_unstable();
    ids.dedup();
    let columns = member_columns("m");
    let sql = format!("SELECT {columns} FROM members m WHERE m.id = $1{}", transaction.for_update());
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let row = transaction.fetch_one(sql.clone(), values![id]).await?;
        found.extend(row.map(|row| member(&mut row.columns_of("m"))).transpose()?);
    }
    Ok(found)
}

/// Returns `None` if the e-mail address is in use.
pub(super) async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    member: NewMember,
) -> Result<Option<MemberRow>, StoreError> {
    let (id, created_at) = (MemberId(new_id()), now_ms());
    let NewMember { email, name, password_hash, permissions } = member;
    let row = MemberRow {
        id,
        organization,
        email,
        name,
        password_hash,
        permissions,
        created_at,
        kind: MemberKind::Person,
        active: true,
        external_id: None,
        team_permissions: String::new(),
    };
    let insert = "INSERT INTO members (id, organization, email, name, password_hash, permissions, created_at) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization, email) DO NOTHING";
    let texts = [&row.email, &row.name, &row.password_hash, &row.permissions];
    let [email, name, password_hash, permissions] = texts.map(|text| Value::from(text.as_str()));
    let values =
        vec![id.0.into(), organization.0.into(), email, name, password_hash, permissions, created_at.into()];
    let inserted = transaction.execute(insert, values).await? == 1;
    Ok(inserted.then_some(row))
}

/// Deletes the codes that a member's old permissions allowed: its invitations, the password resets
/// that it started, and those of its own password.
pub(super) async fn end_codes(transaction: &mut Transaction, id: MemberId) -> Result<(), StoreError> {
    for ended in [
        "DELETE FROM password_resets WHERE member = $1 OR made_by = $1",
        "DELETE FROM invitations WHERE invited_by = $1",
    ] {
        transaction.execute(ended, values![id.0]).await?;
    }
    Ok(())
}

/// Sets a member's password hash and deletes everything begun with the old password.
pub(super) async fn set_password(
    transaction: &mut Transaction,
    id: MemberId,
    password_hash: &str,
) -> Result<(), StoreError> {
    transaction
        .execute("UPDATE members SET password_hash = $2 WHERE id = $1", values![id.0, password_hash])
        .await?;
    transaction.execute("DELETE FROM sessions WHERE member = $1", values![id.0]).await?;
    for ended in BEGUN_WITH_A_PASSWORD {
        transaction.execute(ended, values![id.0]).await?;
    }
    Ok(())
}

/// SQL that deletes what was begun with a member's old password, besides sessions.
const BEGUN_WITH_A_PASSWORD: [&str; 2] = [
    "DELETE FROM confirmations WHERE member = $1",
    "DELETE FROM password_resets WHERE member = $1 OR made_by = $1",
];
