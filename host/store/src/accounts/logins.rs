//! Sign-ins that clients begin and people finish in a browser.

use std::fmt;

use crate::accounts::audit::remember;
use crate::accounts::tokens::insert;
use crate::accounts::{AuditEvent, NewToken, TokenRow};
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, TokenId};
use crate::store::Store;

/// A sign-in to be begun.
#[derive(Clone, Copy)]
pub struct NewLogin<'a> {
    /// SHA-256 of what the client asks with.
    pub poll_sha256: [u8; 32],
    /// SHA-256 of what the page is opened with.
    pub page_sha256: [u8; 32],
    /// Where it is good.
    pub organization: OrganizationId,
    /// The repository that the token is for.
    pub repository: RepositoryId,
    /// Where the client is.
    pub address: &'a str,
    /// ms since 1970.
    pub created_at: i64,
    /// ms since 1970.
    pub expires_at: i64,
}

/// A sign-in. Its `Debug` hides the sealed token.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRow {
    /// Where it is good.
    pub organization: OrganizationId,
    /// The repository that the token is for.
    pub repository: RepositoryId,
    /// The token that was made.
    pub token: Option<TokenId>,
    /// Its secret, sealed, until it is fetched.
    pub sealed: Option<String>,
    /// ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for LoginRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRow").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a sign-in and forgets those that have expired; false when this address has `from_one` open already, or the
    /// organization `of_all`.
    pub async fn begin_login(
        &self,
        login: NewLogin<'_>,
        from_one: u32,
        of_all: u32,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let forget = "DELETE FROM logins WHERE expires_at <= $1";
        transaction.execute(forget, values![login.created_at]).await?;
        let insert = "INSERT INTO logins (poll_sha256, page_sha256, organization, repository, address, created_at, expires_at) \
                      SELECT $1, $2, $3, $4, $5, $6, $7 \
                      WHERE (SELECT COUNT(*) FROM logins WHERE organization = $3 AND address = $5) < $8 \
                      AND (SELECT COUNT(*) FROM logins WHERE organization = $3) < $9";
        let values = values![
            &login.poll_sha256,
            &login.page_sha256,
            login.organization.0,
            login.repository.0,
            login.address,
            login.created_at,
            login.expires_at,
            i64::from(from_one),
            i64::from(of_all),
        ];
        let begun = transaction.execute(insert, values).await? == 1;
        transaction.commit().await?;
        Ok(begun)
    }

    /// The sign-in that a client asks for with this secret, whatever became of it.
    pub async fn login_asked_for(&self, poll_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        self.login("poll_sha256", poll_sha256).await
    }

    /// The sign-in whose page is opened with this secret, whatever became of it.
    pub async fn login_of_page(&self, page_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        self.login("page_sha256", page_sha256).await
    }

    async fn login(&self, by: &'static str, sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        let sql =
            format!("SELECT organization, repository, token, sealed, expires_at FROM logins WHERE {by} = $1");
        let Some(row) = self.inner.db.fetch_one(sql, values![sha256]).await? else { return Ok(None) };
        let mut columns = row.columns();
        Ok(Some(LoginRow {
            organization: OrganizationId(columns.int()?),
            repository: RepositoryId(columns.int()?),
            token: columns.opt_int()?.map(TokenId),
            sealed: columns.opt_text()?,
            expires_at: columns.int()?,
        }))
    }

    /// Makes the token of a sign-in, whose secret waits sealed to be fetched until `until` (ms since 1970); none when the
    /// sign-in is finished already, or gone.
    pub async fn finish_login(
        &self,
        page_sha256: &[u8; 32],
        organization: OrganizationId,
        (token, sealed): (NewToken, &str),
        until: i64,
        audit: Option<AuditEvent>,
    ) -> Result<Option<TokenRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let row = insert(&mut transaction, organization, token).await?;
        let finish = "UPDATE logins SET token = $2, sealed = $3, expires_at = $4 \
                      WHERE page_sha256 = $1 AND organization = $5 AND token IS NULL";
        let values = values![page_sha256, row.id.0, sealed, until, organization.0];
        if transaction.execute(finish, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(row))
    }

    /// Takes the sealed secret away; false when somebody was faster.
    pub async fn take_login(&self, poll_sha256: &[u8; 32], sealed: &str) -> Result<bool, StoreError> {
        let take = "UPDATE logins SET sealed = NULL WHERE poll_sha256 = $1 AND sealed = $2";
        Ok(self.inner.db.execute(take, values![poll_sha256, sealed]).await? == 1)
    }
}
