//! Members of organizations.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

/// A member. Its `Debug` hides the password's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// Its identifier.
    pub id: MemberId,
    /// The one organization that it belongs to.
    pub organization: OrganizationId,
    /// In lower case; unique in the organization.
    pub email: String,
    /// As people see it.
    pub name: String,
    /// Argon2id in PHC form, or empty: no password is right.
    pub password_hash: String,
    /// What it may do, as the API's JSON.
    pub permissions: String,
    /// ms since 1970.
    pub created_at: i64,
}

impl fmt::Debug for MemberRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberRow").field("id", &self.id).field("email", &self.email).finish_non_exhaustive()
    }
}

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

impl Store {
    /// Makes a member; none when the e-mail is in use in this organization.
    pub async fn create_member(
        &self,
        organization: OrganizationId,
        member: NewMember,
        audit: Option<AuditEvent>,
    ) -> Result<Option<MemberRow>, StoreError> {
        let _ = (organization, member, audit);
        unimplemented!()
    }

    /// The member of this identifier in this organization.
    pub async fn find_member(
        &self,
        organization: OrganizationId,
        id: MemberId,
    ) -> Result<Option<MemberRow>, StoreError> {
        let _ = (organization, id);
        unimplemented!()
    }

    /// Members with this e-mail, one in each organization that has one, by organization.
    pub async fn members_by_email(&self, email: &str) -> Result<Vec<MemberRow>, StoreError> {
        let _ = email;
        unimplemented!()
    }

    /// Members in the order of their making, after the identifier `after`, at most `limit`.
    pub async fn list_members(
        &self,
        organization: OrganizationId,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let _ = (organization, after, limit);
        unimplemented!()
    }

    /// Sets what a member may do; false when there is none such.
    pub async fn set_member_permissions(
        &self,
        organization: OrganizationId,
        id: MemberId,
        permissions: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (organization, id, permissions, audit);
        unimplemented!()
    }

    /// Sets a member's password hash and ends its sessions; false when there is none such.
    pub async fn set_member_password(
        &self,
        organization: OrganizationId,
        id: MemberId,
        password_hash: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (organization, id, password_hash, audit);
        unimplemented!()
    }

    /// Deletes a member with its sessions and confirmations and revokes its tokens; false when there is none such.
    pub async fn delete_member(
        &self,
        organization: OrganizationId,
        id: MemberId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (organization, id, audit);
        unimplemented!()
    }
}
