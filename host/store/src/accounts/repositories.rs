//! Repositories.

use std::sync::Arc;

use crate::accounts::AuditEvent;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;

/// A repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryRow {
    /// Its identifier.
    pub id: RepositoryId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Unique in the organization.
    pub name: String,
    /// Which plugin serves it.
    pub format: String,
    /// `hosted`, `proxy` or `group`.
    pub kind: String,
    /// Whether anyone may read it.
    pub public: bool,
    /// As JSON: what was set, without the defaults.
    pub settings: Arc<str>,
    /// A proxy's upstream address.
    pub upstream: Option<String>,
    /// A group's members, in order.
    pub members: Vec<RepositoryId>,
    /// Of the last commit; rises with each.
    pub revision: u64,
    /// Rises with each change of this row that is not a commit.
    pub settings_revision: u64,
    /// ms since 1970.
    pub created_at: i64,
}

/// A repository to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRepository {
    /// Unique in the organization.
    pub name: String,
    /// Which plugin serves it.
    pub format: String,
    /// `hosted`, `proxy` or `group`.
    pub kind: String,
    /// Whether anyone may read it.
    pub public: bool,
    /// As JSON.
    pub settings: String,
    /// A proxy's upstream address.
    pub upstream: Option<String>,
    /// A group's members, in order.
    pub members: Vec<RepositoryId>,
}

impl Store {
    /// Makes a repository; none when its name is in use.
    pub async fn create_repository(
        &self,
        organization: OrganizationId,
        repository: NewRepository,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RepositoryRow>, StoreError> {
        let _ = (organization, repository, audit);
        unimplemented!()
    }

    /// The repository of this identifier in this organization.
    pub async fn find_repository(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
    ) -> Result<Option<RepositoryRow>, StoreError> {
        let _ = (organization, id);
        unimplemented!()
    }

    /// Those of these repositories that are there, in the order asked for.
    pub async fn find_repositories(
        &self,
        organization: OrganizationId,
        ids: &[RepositoryId],
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let _ = (organization, ids);
        unimplemented!()
    }

    /// Repositories in the order of their making, after the identifier `after`, at most `limit`.
    pub async fn list_repositories(
        &self,
        organization: OrganizationId,
        after: Option<RepositoryId>,
        limit: u32,
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let _ = (organization, after, limit);
        unimplemented!()
    }

    /// Writes back `public`, `settings`, `upstream` and `members` where `settings_revision` is still the row's: true, else
    /// false and nothing is changed.
    pub async fn update_repository(
        &self,
        row: &RepositoryRow,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (row, audit);
        unimplemented!()
    }

    /// Deletes a repository with all that it holds; false when there is none such. Its blobs are left to the collection of
    /// garbage.
    pub async fn delete_repository(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (organization, id, audit);
        unimplemented!()
    }

    /// The groups that have this repository as a member.
    pub async fn groups_of(
        &self,
        organization: OrganizationId,
        id: RepositoryId,
    ) -> Result<Vec<RepositoryId>, StoreError> {
        let _ = (organization, id);
        unimplemented!()
    }
}
