//! All that a request to a repository needs to know, in one statement, or in none while nothing was written.

use std::sync::Arc;

use crate::accounts::{MemberRow, OrganizationRow, RepositoryRow, TokenRow};
use crate::error::StoreError;
use crate::ids::OrganizationId;
use crate::store::Store;

/// What is known of a request's repository and credential.
#[derive(Clone, Default, Debug)]
pub struct LookUp {
    /// The repository of this name, with its revision.
    pub repository: Option<RepositoryRow>,
    /// The token of this hash in this organization, whatever its state.
    pub token: Option<TokenRow>,
    /// Whether the token names the repository.
    pub reaches: bool,
    /// The token's owner, whose permissions bound it.
    pub owner: Option<MemberRow>,
}

/// Answers kept while the database is unchanged.
#[derive(Default)]
pub(crate) struct Snapshots {}

impl Store {
    /// Repository, revision, credential and its owner, in one statement. Where the store can tell that nothing was written
    /// since the same was asked, no statement runs at all.
    pub async fn look_up(
        &self,
        organization: OrganizationId,
        repository: &str,
        token_sha256: Option<&[u8; 32]>,
    ) -> Result<Arc<LookUp>, StoreError> {
        let _ = (organization, repository, token_sha256);
        unimplemented!()
    }
}

#[expect(dead_code, reason = "placeholder")]
fn unused(_: OrganizationRow) {}
