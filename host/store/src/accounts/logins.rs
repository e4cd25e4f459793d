//! Sign-ins that clients begin and people finish in a browser.

use std::fmt;

use crate::accounts::event::remember;
use crate::accounts::tokens::insert;
use crate::accounts::told;
use crate::accounts::{AuditEvent, NewToken, TokenRow};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, TokenId};
use crate::store::Store;
use crate::webhooks::Listeners;

/// A sign-in to be begun.
#[derive(Clone, Copy)]
pub struct NewLogin<'a> {
    /// SHA-256 of what the client asks with.
    pub poll_sha256: [u8; 32],
    /// SHA-256 of what the page is opened with.
    pub page_sha256: [u8; 32],
    /// Where it is good.
    pub organization: OrganizationId,
    /// The repository that the token is for; none where there is none of that name, and nobody is told so.
    pub repository: Option<RepositoryId>,
    /// The name of the repository, as the client gave it.
    pub name: &'a str,
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
    /// The repository that the token is for; none for a name that no repository had.
    pub repository: Option<RepositoryId>,
    /// Its name, as the client gave it.
    pub name: String,
    /// The token that was made.
    pub token: Option<TokenId>,
    /// Its secret, sealed, until it is fetched.
    pub sealed: Option<String>,
    /// ms since 1970.
    pub expires_at: i64,
}

/// Whether a sign-in was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginBegun {
    /// It was.
    Begun,
    /// The address has too many open.
    TooMany {
        /// When the first of them expires, in ms since 1970.
        until: i64,
    },
}

impl fmt::Debug for LoginRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRow").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Store {
    /// Begins a sign-in and forgets those that have expired. An address that has `from_one` open begins no more; where the
    /// organization has `of_all` open, the oldest make room, so that one client that fills the table does not keep others out.
    /// Those that a person has finished are not open.
    ///
    /// # Errors
    /// Those of the database.
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

    /// The sign-in that a client asks for with this secret, whatever became of it.
    #[boxed]
    pub async fn login_asked_for(&self, poll_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
        self.login("poll_sha256", poll_sha256).await
    }

    /// The sign-in whose page is opened with this secret, whatever became of it.
    #[boxed]
    pub async fn login_of_page(&self, page_sha256: &[u8; 32]) -> Result<Option<LoginRow>, StoreError> {
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

    /// Makes the token of a sign-in, whose secret waits as `sealed` to be fetched until `until` (ms since 1970); none when the
    /// sign-in is finished already, or gone.
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
        let hooks = told::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        Ok(Some(row))
    }

    /// Takes the sealed secret away; false when another request has taken it.
    #[boxed]
    pub async fn take_login(&self, poll_sha256: &[u8; 32], sealed: &str) -> Result<bool, StoreError> {
        let take = "UPDATE logins SET sealed = NULL WHERE poll_sha256 = $1 AND sealed = $2";
        Ok(self.inner.db.execute(take, values![poll_sha256, sealed]).await? == 1)
    }
}
