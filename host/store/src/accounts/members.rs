//! Members of organizations.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::member::{MEMBER_COLUMNS, MemberRow, member};
use crate::accounts::told;
use crate::boxed;
use crate::db::{Row, Transaction, Value, columns_of, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, TokenId, new_id, now_ms};
use crate::store::Store;
use crate::webhooks::Listeners;

/// A member to be made.
#[derive(Clone)]
pub struct NewMember {
    /// In lower case.
    pub email: String,
    /// As people see it.
    pub name: String,
    /// Argon2id in PHC form.
    pub password_hash: String,
    /// As the API's JSON.
    pub permissions: String,
}

impl fmt::Debug for NewMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMember").field("email", &self.email).finish_non_exhaustive()
    }
}

/// The result of changing a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberChange {
    /// It is done.
    Done,
    /// The member changed since it was read, or is gone; nothing is changed.
    Changed,
    /// There is no other of whom one must remain; nothing is changed.
    Last,
}

impl Store {
    /// Makes a member; none when the e-mail is in use in this organization.
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

    /// The member of this identifier in this organization.
    #[boxed]
    pub async fn find_member(
        &self,
        organization: OrganizationId,
        id: MemberId,
    ) -> Result<Option<MemberRow>, StoreError> {
        let found = self.members("m.organization = $1 AND m.id = $2", values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Members with this e-mail, one in each organization that has one, by organization.
    #[boxed]
    pub async fn members_by_email(&self, email: &str) -> Result<Vec<MemberRow>, StoreError> {
        self.members("m.email = $1 ORDER BY m.organization", values![email]).await
    }

    /// Members in the order of their making, after the identifier `after`, at most `limit`.
    #[boxed]
    pub async fn list_members(
        &self,
        organization: OrganizationId,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let values = values![organization.0, after, i64::from(limit)];
        self.members("m.organization = $1 AND m.id > $2 ORDER BY m.id LIMIT $3", values).await
    }

    /// Sets what a member may do, if that is still what was read; `needed` tells from permissions whether a member is one of
    /// whom there must be another. Another than before ends the password resets that the member made, those of its own password,
    /// and what it has invited to: they were judged by what it could do.
    pub async fn set_member_permissions(
        &self,
        read: &MemberRow,
        permissions: &str,
        needed: fn(&str) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if needed(&read.permissions)
            && !needed(permissions)
            && !another(&mut transaction, read, needed).await?
        {
            return Ok(MemberChange::Last);
        }
        let update =
            "UPDATE members SET permissions = $4 WHERE organization = $1 AND id = $2 AND permissions = $3";
        let values = values![read.organization.0, read.id.0, read.permissions.as_str(), permissions];
        if transaction.execute(update, values).await? == 0 {
            return Ok(MemberChange::Changed);
        }
        if read.permissions != permissions {
            for ended in [
                "DELETE FROM password_resets WHERE member = $1 OR made_by = $1",
                "DELETE FROM invitations WHERE invited_by = $1",
            ] {
                transaction.execute(ended, values![read.id.0]).await?;
            }
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(MemberChange::Done)
    }

    /// Sets a member's password hash and ends its sessions; false when there is none.
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

    /// Sets a member's name; false when there is none.
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

    /// Sets what a member signs in with, if its password still is what was read, with its name where one is given; true when it is
    /// done. Ends the member's sessions but for `keep`, and what was begun with the old password.
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

    /// Deletes a member, if it may still do what was read, with its sessions, confirmations, resets and invitations, and
    /// revokes its tokens; `needed` as for [`Store::set_member_permissions`].
    pub async fn delete_member(
        &self,
        read: &MemberRow,
        needed: fn(&str) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if needed(&read.permissions) && !another(&mut transaction, read, needed).await? {
            return Ok(MemberChange::Last);
        }
        // What goes with the row, the schema says.
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
        let hooks = told::revoked(&mut transaction, &listeners, &revoked, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        Ok(MemberChange::Done)
    }

    async fn members(&self, condition: &str, values: Vec<Value>) -> Result<Vec<MemberRow>, StoreError> {
        let sql = format!("SELECT {} FROM members m WHERE {condition}", columns_of("m", MEMBER_COLUMNS));
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row: &Row| member(&mut row.columns_of("m"))).collect()
    }
}

/// Those of these members who are there, who do not change before the transaction ends.
pub(super) async fn lock(
    transaction: &mut Transaction,
    ids: &[MemberId],
) -> Result<Vec<MemberRow>, StoreError> {
    let mut ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    // In one order, so that two who lock the same never wait for each other.
    ids.sort_unstable();
    ids.dedup();
    let columns = columns_of("m", MEMBER_COLUMNS);
    let sql = format!("SELECT {columns} FROM members m WHERE m.id = $1{}", transaction.for_update());
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let row = transaction.fetch_one(sql.clone(), values![id]).await?;
        found.extend(row.map(|row| member(&mut row.columns_of("m"))).transpose()?);
    }
    Ok(found)
}

/// None when the e-mail is in use.
pub(super) async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    member: NewMember,
) -> Result<Option<MemberRow>, StoreError> {
    let (id, created_at) = (MemberId(new_id()), now_ms());
    let NewMember { email, name, password_hash, permissions } = member;
    let row = MemberRow { id, organization, email, name, password_hash, permissions, created_at };
    let insert = "INSERT INTO members (id, organization, email, name, password_hash, permissions, created_at) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organization, email) DO NOTHING";
    let texts = [&row.email, &row.name, &row.password_hash, &row.permissions];
    let [email, name, password_hash, permissions] = texts.map(|text| Value::from(text.as_str()));
    let values =
        vec![id.0.into(), organization.0.into(), email, name, password_hash, permissions, created_at.into()];
    let inserted = transaction.execute(insert, values).await? == 1;
    Ok(inserted.then_some(row))
}

/// Sets a member's password hash and ends what was begun with the old password.
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

/// What ends with a password besides sessions.
const BEGUN_WITH_A_PASSWORD: [&str; 2] = [
    "DELETE FROM confirmations WHERE member = $1",
    "DELETE FROM password_resets WHERE member = $1 OR made_by = $1",
];

/// Whether another member of the organization is one of whom one must remain. Two who ask at one time wait for each other,
/// so that they cannot both count on the other.
async fn another(
    transaction: &mut Transaction,
    read: &MemberRow,
    needed: fn(&str) -> bool,
) -> Result<bool, StoreError> {
    let lock = format!("SELECT id FROM organizations WHERE id = $1{}", transaction.for_update());
    transaction.fetch(lock, values![read.organization.0]).await?;
    let others = "SELECT permissions FROM members WHERE organization = $1 AND id <> $2";
    for row in transaction.fetch(others, values![read.organization.0, read.id.0]).await? {
        if needed(&row.columns().text("permissions")?) {
            return Ok(true);
        }
    }
    Ok(false)
}
