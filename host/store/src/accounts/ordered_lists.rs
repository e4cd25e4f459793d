//! Lists in the order in which people read them: credentials with the newest first, and
//! repositories and members by name. The API lists all of them by creation time.

use super::{ApiTokenRow, MemberRow, RepositoryRow, TokenRow};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{ApiTokenId, MemberId, OrganizationId, TokenId};
use crate::store::Store;

impl Store {
    /// Lists at most `limit` tokens, the newest first, from before the identifier `before`. Lists
    /// the owner's tokens, or, without an owner, the service keys with this backing.
    #[boxed]
    pub async fn list_newest_tokens(
        &self,
        organization: OrganizationId,
        owner: Option<MemberId>,
        backing: Option<&str>,
        before: Option<TokenId>,
        limit: u32,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let (before, limit) = (before.map_or(i64::MAX, |before| before.0), i64::from(limit));
        match owner {
            Some(owner) => {
                let condition =
                    "t.organization = $1 AND t.owner = $2 AND t.id < $3 ORDER BY t.id DESC LIMIT $4";
                self.tokens(condition, values![organization.0, owner.0, before, limit]).await
            }
            None => {
                let condition = "t.organization = $1 AND t.owner IS NULL AND t.backing = $2 AND t.id < $3 \
                                 ORDER BY t.id DESC LIMIT $4";
                self.tokens(condition, values![organization.0, backing, before, limit]).await
            }
        }
    }

    /// Lists at most `limit` API tokens of this owner in any state, the newest first, from before
    /// the identifier `before`.
    #[boxed]
    pub async fn list_newest_api_tokens(
        &self,
        organization: OrganizationId,
        owner: MemberId,
        before: Option<ApiTokenId>,
        limit: u32,
    ) -> Result<Vec<ApiTokenRow>, StoreError> {
        let (before, limit) = (before.map_or(i64::MAX, |before| before.0), i64::from(limit));
        let condition = "a.organization = $1 AND a.owner = $2 AND a.id < $3 ORDER BY a.id DESC LIMIT $4";
        self.api_tokens(condition, values![organization.0, owner.0, before, limit]).await
    }

    /// Lists at most `limit` repositories by name, after the name `after`.
    #[boxed]
    pub async fn list_repositories_by_name(
        &self,
        organization: OrganizationId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<RepositoryRow>, StoreError> {
        let values = values![organization.0, after.unwrap_or_default(), i64::from(limit)];
        self.repositories("r.organization = $1 AND r.name > $2 ORDER BY r.name LIMIT $3", values).await
    }

    /// Lists at most `limit` persons by e-mail address, after the address `after`. The list does
    /// not contain service accounts.
    #[boxed]
    pub async fn list_members_by_email(
        &self,
        organization: OrganizationId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        let condition =
            "m.organization = $1 AND m.kind = 'person' AND m.email > $2 ORDER BY m.email LIMIT $3";
        let values = values![organization.0, after.unwrap_or_default(), i64::from(limit)];
        self.members(condition, values).await
    }
}
