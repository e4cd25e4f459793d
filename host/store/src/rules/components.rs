//! Components of policies: kept once by digest, their bytes in pieces, so that no row is too large for a backup or a driver.

use bytes::{Bytes, BytesMut};

use super::renumber;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::OrganizationId;
use crate::store::Store;

/// Components that a server keeps.
pub const MAX_POLICY_COMPONENTS: u32 = 30;
/// Bytes of a piece.
const PIECE: usize = 512 << 10;
const COLUMNS: &str = "digest, name, version, told, size, installed_by, installed_at FROM policy_components";

/// A component to be kept.
#[derive(Clone, Debug)]
pub struct NewPolicyComponent {
    /// `sha256:` and hex of its bytes.
    pub digest: String,
    /// As it calls itself.
    pub name: String,
    /// Its own.
    pub version: String,
    /// What it says of itself besides, as a JSON object.
    pub told: String,
    /// The fingerprint of the trusted key that signed it.
    pub signed_by: Option<String>,
    /// An e-mail.
    pub installed_by: String,
    /// All of it.
    pub bytes: Bytes,
}

/// A component that is kept, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyComponentRow {
    /// `sha256:` and hex of its bytes.
    pub digest: String,
    /// As it calls itself.
    pub name: String,
    /// Its own.
    pub version: String,
    /// What it says of itself besides, as a JSON object.
    pub told: String,
    /// Its bytes.
    pub size: u64,
    /// The fingerprint of the trusted key that signed it.
    pub signed_by: Option<String>,
    /// An e-mail.
    pub installed_by: String,
    /// When it was first kept, in ms since 1970.
    pub installed_at: i64,
}

impl Store {
    /// Keeps a component. Of one that is there already, a signature counts from now on, and everything else stays as it is. False where there
    /// are as many as may be.
    #[boxed]
    pub async fn keep_policy_component(
        &self,
        component: NewPolicyComponent,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let NewPolicyComponent { digest, name, version, told, signed_by, installed_by, bytes } = component;
        let told = signed(&told, signed_by.as_deref())?;
        let mut transaction = self.inner.db.begin().await?;
        let there = "SELECT digest FROM policy_components WHERE digest = $1";
        if transaction.fetch_one(there, values![digest.as_str()]).await?.is_some() {
            if signed_by.is_some() {
                sign(&mut transaction, &digest, &told).await?;
                remember(&mut transaction, audit).await?;
                transaction.commit().await?;
            }
            return Ok(true);
        }
        let insert = "INSERT INTO policy_components (digest, name, version, told, size, installed_by, installed_at) \
                      SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT COUNT(*) FROM policy_components) < $8 \
                      ON CONFLICT (digest) DO NOTHING";
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let most = i64::from(MAX_POLICY_COMPONENTS);
        let values = values![digest.as_str(), name, version, told, size, installed_by, self.now_ms(), most];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(false);
        }
        for (number, piece) in (0_i64..).zip(bytes.chunks(PIECE)) {
            let insert = "INSERT INTO policy_pieces (digest, number, bytes) VALUES ($1, $2, $3)";
            transaction.execute(insert, values![digest.as_str(), number, piece]).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// All that are kept, from the oldest on.
    #[boxed]
    pub async fn policy_components(&self) -> Result<Vec<PolicyComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} ORDER BY installed_at, digest");
        self.inner.db.fetch(sql, values![]).await?.iter().map(component).collect()
    }

    /// The one of this digest.
    #[boxed]
    pub async fn find_policy_component(
        &self,
        digest: &str,
    ) -> Result<Option<PolicyComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE digest = $1");
        let row = self.inner.db.fetch_one(sql, values![digest]).await?;
        row.as_ref().map(component).transpose()
    }

    /// The bytes of the one of this digest; none where it is not kept. `Corrupt` where a part of them is missing.
    #[boxed]
    pub async fn policy_component_bytes(&self, digest: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(row) = self.find_policy_component(digest).await? else { return Ok(None) };
        let mut bytes = BytesMut::with_capacity(usize::try_from(row.size).unwrap_or_default());
        let sql = "SELECT bytes FROM policy_pieces WHERE digest = $1 ORDER BY number";
        for piece in self.inner.db.fetch(sql, values![digest]).await? {
            bytes.extend_from_slice(&piece.columns().bytes("bytes")?);
        }
        if bytes.len() as u64 != row.size {
            return Err(StoreError::Corrupt(format!("the policy {digest} is not whole")));
        }
        Ok(Some(bytes.freeze()))
    }

    /// Removes one that no rule names: false where one does, or it is not there.
    #[boxed]
    pub async fn remove_policy_component(
        &self,
        digest: &str,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let pieces = "DELETE FROM policy_pieces WHERE digest = $1 \
                      AND NOT EXISTS (SELECT 1 FROM policy_rules WHERE component = $1)";
        transaction.execute(pieces, values![digest]).await?;
        let delete = "DELETE FROM policy_components WHERE digest = $1 \
                      AND NOT EXISTS (SELECT 1 FROM policy_rules WHERE component = $1)";
        let removed = transaction.execute(delete, values![digest]).await? == 1;
        if removed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(removed)
    }
}

/// Writes what a component says of itself, with its signature. Rules that name it are read again on every server.
async fn sign(transaction: &mut Transaction, digest: &str, told: &str) -> Result<(), StoreError> {
    let update = "UPDATE policy_components SET told = $2 WHERE digest = $1";
    transaction.execute(update, values![digest, told]).await?;
    let sql = "SELECT DISTINCT organization FROM policy_rules WHERE component = $1";
    for row in transaction.fetch(sql, values![digest]).await? {
        renumber(transaction, OrganizationId(row.columns().int("organization")?)).await?;
    }
    Ok(())
}

/// A signature is kept in the object of what a component says, so that servers of the version before keep it too.
const SIGNED_BY: &str = "signed_by";

fn signed(told: &str, signed_by: Option<&str>) -> Result<String, StoreError> {
    let Some(signed_by) = signed_by else { return Ok(told.to_owned()) };
    let mut told: serde_json::Map<String, serde_json::Value> = serde_json::from_str(told)
        .map_err(|error| StoreError::Invalid(format!("what a policy says of itself: {error}")))?;
    told.insert(SIGNED_BY.to_owned(), signed_by.into());
    Ok(serde_json::Value::Object(told).to_string())
}

fn component(row: &Row) -> Result<PolicyComponentRow, StoreError> {
    let mut columns = row.columns();
    let told = columns.text("told")?;
    let object: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
    Ok(PolicyComponentRow {
        signed_by: object.get(SIGNED_BY).and_then(|key| key.as_str()).map(str::to_owned),
        digest: columns.text("digest")?,
        name: columns.text("name")?,
        version: columns.text("version")?,
        told,
        size: columns.unsigned("size")?,
        installed_by: columns.text("installed_by")?,
        installed_at: columns.int("installed_at")?,
    })
}
