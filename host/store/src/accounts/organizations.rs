//! Organizations, and the first of them with its owner.

use crate::accounts::{AuditEvent, MemberRow, NewMember};
use crate::error::StoreError;
use crate::ids::OrganizationId;
use crate::store::Store;

/// An organization.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrganizationRow {
    /// Its identifier.
    pub id: OrganizationId,
    /// Unique.
    pub name: String,
    /// Its public address, where one was given.
    pub base_url: Option<String>,
    /// `host` or `host:port` of that address in lower case, by which requests find it; unique.
    pub host: Option<String>,
    /// ms since 1970.
    pub created_at: i64,
}

/// An organization to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOrganization {
    /// Unique.
    pub name: String,
    /// Its public address.
    pub base_url: Option<String>,
    /// `host` or `host:port` of that address in lower case.
    pub host: Option<String>,
}

impl Store {
    /// Makes the first organization with its owner, both at once, unless there is an organization already: then none. Of two
    /// processes that start at once, one makes them.
    pub async fn bootstrap(
        &self,
        organization: NewOrganization,
        owner: NewMember,
    ) -> Result<Option<(OrganizationRow, MemberRow)>, StoreError> {
        let _ = (organization, owner);
        unimplemented!()
    }

    /// Makes an organization; none when its name or host is in use.
    pub async fn create_organization(
        &self,
        organization: NewOrganization,
        audit: Option<AuditEvent>,
    ) -> Result<Option<OrganizationRow>, StoreError> {
        let _ = (organization, audit);
        unimplemented!()
    }

    /// Every organization, in the order of their making. There are few.
    pub async fn organizations(&self) -> Result<Vec<OrganizationRow>, StoreError> {
        unimplemented!()
    }

    /// The organization of this host (`host` or `host:port`, lower case).
    pub async fn organization_by_host(&self, host: &str) -> Result<Option<OrganizationRow>, StoreError> {
        let _ = host;
        unimplemented!()
    }

    /// Sets an organization's public address; false when there is none such or the host is another's.
    pub async fn set_base_url(
        &self,
        id: OrganizationId,
        base_url: Option<&str>,
        host: Option<&str>,
    ) -> Result<bool, StoreError> {
        let _ = (id, base_url, host);
        unimplemented!()
    }
}
