//! Sign-ins that a client begins and a person completes in a browser.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::token_events;
use crate::accounts::tokens::insert;
use crate::accounts::{AuditEvent, NewToken, TokenRow};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, TokenId};
use crate::store::Store;
use crate::webhooks::Listeners;

/// Fields of a sign-in to be begun.
#[derive(Clone, Copy)]
pub struct NewLogin<'a> {
    /// SHA-256 of the secret with which the client polls.
    pub poll_sha256: [u8; 32],
    /// SHA-256 of the secret in the page's address.
    pub page_sha256: [u8; 32],
    pub organization: OrganizationId,
    /// Repository of the token. It is `None` if no repository has this name; the client must not
    /// see that difference.
    pub repository: Option<RepositoryId>,
    /// Name of the repository, as the client gave it.
    pub name: &'a str,
    pub address: &'a str,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

/// A sign-in. Its `Debug` hides the sealed token.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRow {
    pub organization: OrganizationId,
    /// Repository of the token; `None` if no repository had this name.
    pub repository: Option<RepositoryId>,
    /// Name of the repository, as the client gave it.
    pub name: String,
    /// Created token, once the sign-in is completed.
    pub token: Option<TokenId>,
    /// Sealed secret of the token, until the client fetches it.
    pub sealed: Option<String>,
    /// Time in ms since 1970.
    pub expires_at: i64,
}

/// Result of beginning a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginBegun {
    Begun,
    /// The client address has too many open sign-ins.
    TooMany {
        /// Earliest expiry among the open sign-ins, in ms since 1970.
        until: i64,
    },
}

impl fmt::Debug for LoginRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRow").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a sign-in and deletes expired ones. An address with `from_one` open sign-ins cannot
    /// begin another. If the organization has `of_all` open sign-ins, deletes the oldest ones, so
    /// that a client that fills the table does not lock out other clients. A completed sign-in does
    /// not count as open.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn begin_login(
        &self,
        login: NewLogin<'_>,
        from_one: u32,
        of_all: u32,
    ) -> Result<LoginBegun, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let forget = "DELETE FROM logins WHERE expires_at <= $1";
        transaction.execute(forget, values![login.created_at]).await?;
        let insert = "INSERT INTO logins (poll_sha256, page_sha256, organization, repository, address, created_at, expires_at, name) \
                      SELECT $1, $2, $3, $4, $5, $6, $7, $9 \
                      WHERE (SELECT COUNT(*) FROM logins WHERE organization = $3 AND address = $5 AND token IS NULL) < $8";
        let values = values![
            &login.poll_sha256,
            &login.page_sha256,
            login.organization.0,
            login.repository.map(|repository| repository.0),
            login.address,
            login.created_at,
            login.expires_at,
            i64::from(from_one),
            login.name,
        ];
        let begun = if transaction.execute(insert, values).await? == 1 {
            let make_room = "DELETE FROM logins WHERE poll_sha256 IN (SELECT poll_sha256 FROM logins \
                             WHERE organization = $1 AND token IS NULL AND poll_sha256 <> $2 \
                             ORDER BY created_at DESC, poll_sha256 LIMIT $3 OFFSET $4)";
            let others = i64::from(of_all) - 1;
            let values = values![login.organization.0, &login.poll_sha256, i64::MAX, others];
            transaction.execute(make_room, values).await?;
            LoginBegun::Begun
        } else {
            let first = "SELECT MIN(expires_at) AS until FROM logins WHERE organization = $1 AND address = $2 AND token IS NULL";
            let row = transaction.fetch_one(first, values![login.organization.0, login.address]).await?;
            let until = row.map_or(Ok(None), |row| row.columns().opt_int("until"))?;
            LoginBegun::TooMany { until: until.unwrap_or(login.created_at) }
        };
        transaction.commit().await?;
        Ok(begun)
    }

    /// Returns the sign-in that the client polls with this secret, in any state.
    #[boxed]
    pub async fn login_by_poll_secret(&self, poll_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        self.login("poll_sha256", poll_sha256).await
    }

    /// Returns the sign-in whose page has this secret, in any state.
    #[boxed]
    pub async fn login_by_page_secret(&self, page_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        self.login("page_sha256", page_sha256).await
    }

    async fn login(&self, by: &'static str, sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        let sql = format!(
            "SELECT organization, repository, name, token, sealed, expires_at FROM logins WHERE {by} = $1"
        );
        let Some(row) = self.inner.db.fetch_one(sql, values![sha256]).await? else { return Ok(None) };
        let mut columns = row.columns();
        Ok(Some(LoginRow {
            organization: OrganizationId(columns.int("organization")?),
            repository: columns.opt_int("repository")?.map(RepositoryId),
            name: columns.text("name")?,
            token: columns.opt_int("token")?.map(TokenId),
            sealed: columns.opt_text("sealed")?,
            expires_at: columns.int("expires_at")?,
        }))
    }

    /// Creates the token of a sign-in. Its secret waits as `sealed` until the client fetches it, at
    /// most until `until` (ms since 1970). Returns `None` if the sign-in is already completed or no
    /// longer exists.
    #[boxed]
    pub async fn finish_login(
        &self,
        page_sha256: &[u8; 32],
        organization: OrganizationId,
        token: NewToken,
        sealed: &str,
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
        let listeners = Listeners::of(&mut transaction, organization).await?;
        let hooks = token_events::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(Some(row))
    }

    /// Removes the sealed secret. Returns false if another request removed it first.
    #[boxed]
    pub async fn take_login(&self, poll_sha256: &[u8; 32], sealed: &str) -> Result<bool, StoreError> {
        let take = "UPDATE logins SET sealed = NULL WHERE poll_sha256 = $1 AND sealed = $2";
        Ok(self.inner.db.execute(take, values![poll_sha256, sealed]).await? == 1)
    }
}
