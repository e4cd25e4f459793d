//! Trusted publishers as rows: workflows of build services that may publish in one repository, and
//! the tokens issued for their ID tokens. The caller verifies ID tokens.

mod mint;

pub(crate) use mint::spend_credential;
pub use mint::{Mint, PublisherUse, SpentIdToken, TokenToMint};

use crate::accounts::{AuditEvent, Scope, remember, token_events};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PublisherId, RepositoryId, TokenId, new_id};
use crate::store::Store;
use crate::webhooks::Listeners;

/// Maximum number of publishers of a repository.
pub const MAX_PUBLISHERS: u32 = 200;
/// Backing of a token that trusted publishers vouch for.
pub const PUBLISHER_BACKING: &str = "publisher";

const COLUMNS: &str = "p.id, p.organization, p.repository, r.name AS repository_name, r.format, p.provider, p.issuer, p.claims, p.packages, \
    p.scope, p.owner_id, p.created_by, p.created_at, p.last_used_at \
    FROM trusted_publishers p JOIN repositories r ON r.id = p.repository AND r.deleted_at IS NULL";

/// A publisher to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPublisher {
    /// Repository in which it may publish.
    pub repository: RepositoryId,
    /// Kind of the provider: `github`, `gitlab` or `oidc`.
    pub provider: String,
    /// URL of the issuer of its ID tokens.
    pub issuer: String,
    /// Required claims of an ID token, as a JSON object.
    pub claims: String,
    /// Patterns of package names, as a JSON list.
    pub packages: String,
    /// Scope of the tokens that it gets.
    pub scope: Scope,
    /// Id of the owner of the workflow's repository, if it was stated.
    pub owner_id: Option<String>,
    /// E-mail address of the creator.
    pub created_by: String,
}

/// A publisher of an existing repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublisherRow {
    pub id: PublisherId,
    pub organization: OrganizationId,
    /// Repository in which it may publish.
    pub repository: RepositoryId,
    pub repository_name: String,
    pub format: String,
    /// Kind of the provider: `github`, `gitlab` or `oidc`.
    pub provider: String,
    /// URL of the issuer of its ID tokens.
    pub issuer: String,
    /// Required claims of an ID token, as a JSON object.
    pub claims: String,
    /// Patterns of package names, as a JSON list.
    pub packages: String,
    /// Scope of the tokens that it gets.
    pub scope: Scope,
    /// Id of the owner of the workflow's repository: as stated, or from the first use.
    pub owner_id: Option<String>,
    /// E-mail address of the creator.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
    /// Time at which a token was last issued for the publisher, in ms since 1970.
    pub last_used_at: Option<i64>,
}

impl Store {
    /// Creates a publisher; `None` if the repository has the maximum number.
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

    /// Publishers of one repository or of all, in the order of creation, after the identifier
    /// `after`, at most `limit`.
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

    /// Publishers with this issuer, in the order of creation, at most `limit`.
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

    /// Deletes a publisher, and revokes the tokens issued for it at `now` (ms since 1970). Returns
    /// false if it does not exist.
    #[boxed]
    pub async fn delete_publisher(
        &self,
        organization: OrganizationId,
        id: PublisherId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        // A concurrent exchange also changes the publisher's row, so one of the two transactions
        // waits for the end of the other.
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
        let hooks = token_events::revoked(&mut transaction, &listeners, &working, audit.as_ref()).await?;
        let delete = "DELETE FROM trusted_publishers WHERE organization = $1 AND id = $2";
        transaction.execute(delete, values![organization.0, id.0]).await?;
        remember(&mut transaction, audit.map(|event| naming(event, id))).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(true)
    }
}

/// Adds the publisher's identifier to an event.
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
