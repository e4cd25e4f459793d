//! Trusted publishers as rows: workflows of build services that may publish in one repository, and the tokens that are given out for
//! their ID tokens. What an ID token must say is judged by the caller.

mod mint;

pub(crate) use mint::spend_credential;
pub use mint::{Mint, PublisherUse, SpentIdToken, TokenToMint};

use crate::accounts::{AuditEvent, Scope, remember, told};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PublisherId, RepositoryId, TokenId, new_id};
use crate::store::Store;
use crate::webhooks::Listeners;

/// Publishers that a repository may have.
pub const MAX_PUBLISHERS: u32 = 200;
/// The backing of a token that trusted publishers stand behind.
pub const PUBLISHER_BACKING: &str = "publisher";

const COLUMNS: &str = "p.id, p.organization, p.repository, r.name AS repository_name, r.format, p.provider, p.issuer, p.claims, p.packages, \
    p.scope, p.owner_id, p.created_by, p.created_at, p.last_used_at \
    FROM trusted_publishers p JOIN repositories r ON r.id = p.repository AND r.deleted_at IS NULL";

/// A publisher to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPublisher {
    /// Where it may publish.
    pub repository: RepositoryId,
    /// `github`, `gitlab` or `oidc`.
    pub provider: String,
    /// Who vouches for it: the address of an issuer of ID tokens.
    pub issuer: String,
    /// What an ID token must say, as a JSON object.
    pub claims: String,
    /// Patterns of packages, as a JSON list.
    pub packages: String,
    /// What its tokens may do.
    pub scope: Scope,
    /// The number of who owns the workflow's repository, where it was stated.
    pub owner_id: Option<String>,
    /// An e-mail.
    pub created_by: String,
}

/// A publisher, of a repository that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublisherRow {
    /// Its identifier.
    pub id: PublisherId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Where it may publish.
    pub repository: RepositoryId,
    /// The repository's name.
    pub repository_name: String,
    /// The repository's format.
    pub format: String,
    /// `github`, `gitlab` or `oidc`.
    pub provider: String,
    /// Who vouches for it.
    pub issuer: String,
    /// What an ID token must say, as a JSON object.
    pub claims: String,
    /// Patterns of packages, as a JSON list.
    pub packages: String,
    /// What its tokens may do.
    pub scope: Scope,
    /// The number of who owns the workflow's repository: stated, or as it was seen first.
    pub owner_id: Option<String>,
    /// An e-mail.
    pub created_by: String,
    /// ms since 1970.
    pub created_at: i64,
    /// ms since 1970: when a token was given out for it last.
    pub last_used_at: Option<i64>,
}

impl Store {
    /// Makes a publisher; none when the repository has as many as it may.
    #[boxed]
    pub async fn create_publisher(
        &self,
        organization: OrganizationId,
        new: NewPublisher,
        audit: Option<AuditEvent>,
    ) -> Result<Option<PublisherRow>, StoreError> {
        let id = PublisherId(new_id());
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO trusted_publishers (id, organization, repository, provider, issuer, claims, packages, scope, owner_id, \
                      created_by, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 \
                      WHERE (SELECT COUNT(*) FROM trusted_publishers WHERE repository = $3) < $12";
        let NewPublisher { repository, provider, issuer, claims, packages, scope, owner_id, created_by } =
            new;
        let values = values![
            id.0,
            organization.0,
            repository.0,
            provider,
            issuer,
            claims,
            packages,
            scope.bits(),
            owner_id,
            created_by,
            self.now_ms(),
            i64::from(MAX_PUBLISHERS),
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit.map(|event| naming(event, id))).await?;
        transaction.commit().await?;
        self.find_publisher(organization, id).await
    }

    /// The publisher of this identifier in this organization.
    #[boxed]
    pub async fn find_publisher(
        &self,
        organization: OrganizationId,
        id: PublisherId,
    ) -> Result<Option<PublisherRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE p.organization = $1 AND p.id = $2");
        let row = self.inner.db.fetch_one(sql, values![organization.0, id.0]).await?;
        row.as_ref().map(publisher).transpose()
    }

    /// Publishers in the order of their making, after the identifier `after`, at most `limit`: of one repository, or of all.
    #[boxed]
    pub async fn list_publishers(
        &self,
        organization: OrganizationId,
        repository: Option<RepositoryId>,
        after: Option<PublisherId>,
        limit: u32,
    ) -> Result<Vec<PublisherRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} WHERE p.organization = $1 AND p.id > $2 AND ($3 IS NULL OR p.repository = $3) \
             ORDER BY p.id LIMIT $4"
        );
        let after = after.map_or(i64::MIN, |after| after.0);
        let repository = repository.map(|repository| repository.0);
        let values = values![organization.0, after, repository, i64::from(limit)];
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(publisher).collect()
    }

    /// The publishers that this issuer vouches for, in the order of their making, at most `limit`.
    #[boxed]
    pub async fn publishers_of_issuer(
        &self,
        organization: OrganizationId,
        issuer: &str,
        limit: u32,
    ) -> Result<Vec<PublisherRow>, StoreError> {
        if issuer.contains('\0') {
            return Ok(Vec::new());
        }
        let sql =
            format!("SELECT {COLUMNS} WHERE p.organization = $1 AND p.issuer = $2 ORDER BY p.id LIMIT $3");
        let rows = self.inner.db.fetch(sql, values![organization.0, issuer, i64::from(limit)]).await?;
        rows.iter().map(publisher).collect()
    }

    /// Deletes a publisher, and revokes at `now` (ms since 1970) the tokens that were given out for it; false when there is none.
    #[boxed]
    pub async fn delete_publisher(
        &self,
        organization: OrganizationId,
        id: PublisherId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        // Whoever gives a token out for it changes its row first: one of the two waits.
        let touch =
            "UPDATE trusted_publishers SET last_used_at = last_used_at WHERE organization = $1 AND id = $2";
        if transaction.execute(touch, values![organization.0, id.0]).await? == 0 {
            return Ok(false);
        }
        let working = "SELECT t.id FROM tokens t JOIN publisher_tokens p ON p.token = t.id WHERE p.publisher = $1 \
                       AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) ORDER BY t.id";
        let rows = transaction.fetch(working, values![id.0, now]).await?;
        let working = rows.iter().map(|row| row.columns().int("id").map(TokenId));
        let working: Vec<TokenId> = working.collect::<Result<_, _>>()?;
        let revoke = "UPDATE tokens SET revoked_at = $2 WHERE revoked_at IS NULL \
                      AND id IN (SELECT token FROM publisher_tokens WHERE publisher = $1)";
        transaction.execute(revoke, values![id.0, now]).await?;
        let listeners = Listeners::of(&mut transaction, organization).await?;
        let hooks = told::revoked(&mut transaction, &listeners, &working, audit.as_ref()).await?;
        let delete = "DELETE FROM trusted_publishers WHERE organization = $1 AND id = $2";
        transaction.execute(delete, values![organization.0, id.0]).await?;
        remember(&mut transaction, audit.map(|event| naming(event, id))).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        Ok(true)
    }
}

/// The event with the publisher's identifier.
fn naming(event: AuditEvent, id: PublisherId) -> AuditEvent {
    AuditEvent { detail: format!(r#"{{"publisher":"{id}"}}"#), ..event }
}

fn publisher(row: &Row) -> Result<PublisherRow, StoreError> {
    let mut columns = row.columns();
    Ok(PublisherRow {
        id: PublisherId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        repository: RepositoryId(columns.int("repository")?),
        repository_name: columns.text("repository_name")?,
        format: columns.text("format")?,
        provider: columns.text("provider")?,
        issuer: columns.text("issuer")?,
        claims: columns.text("claims")?,
        packages: columns.text("packages")?,
        scope: Scope::from_bits(columns.int("scope")?),
        owner_id: columns.opt_text("owner_id")?,
        created_by: columns.text("created_by")?,
        created_at: columns.int("created_at")?,
        last_used_at: columns.opt_int("last_used_at")?,
    })
}
