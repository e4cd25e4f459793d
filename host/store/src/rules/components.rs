//! Policy components, stored once by digest. Their bytes are split into pieces, so that no row is
//! too large for a backup or a driver.

use bytes::{Bytes, BytesMut};

use super::renumber;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::ids::OrganizationId;
use crate::store::Store;

/// Maximum number of stored components.
pub const MAX_POLICY_COMPONENTS: u32 = 30;
/// Size of a piece in bytes.
const PIECE: usize = 512 << 10;
const COLUMNS: &str = "digest, name, version, told, size, installed_by, installed_at FROM policy_components";

/// A component to be stored.
#[derive(Clone, Debug)]
pub struct NewPolicyComponent {
    /// `sha256:` and the digest of the bytes in hex.
    pub digest: String,
    /// Name that the component declares.
    pub name: String,
    /// Version that the component declares.
    pub version: String,
    /// Rest of the component's description, as a JSON object.
    pub description: String,
    /// Fingerprint of the trusted key that signed the component.
    pub signed_by: Option<String>,
    /// E-mail address of the installer.
    pub installed_by: String,
    /// Content of the whole component.
    pub bytes: Bytes,
}

/// A stored component, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyComponentRow {
    /// `sha256:` and the digest of the bytes in hex.
    pub digest: String,
    /// Name that the component declares.
    pub name: String,
    /// Version that the component declares.
    pub version: String,
    /// Rest of the component's description, as a JSON object.
    pub description: String,
    /// Size of the component in bytes.
    pub size: u64,
    /// Fingerprint of the trusted key that signed the component.
    pub signed_by: Option<String>,
    /// E-mail address of the installer.
    pub installed_by: String,
    /// Time of the first installation, in ms since 1970.
    pub installed_at: i64,
}

impl Store {
    /// Stores a component. If the component exists already, only adds a new signature. Returns
    /// false if the maximum number is reached.
    #[boxed]
    pub async fn keep_policy_component(
        &self,
        component: NewPolicyComponent,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let NewPolicyComponent { digest, name, version, description, signed_by, installed_by, bytes } =
            component;
        let description = signed(&description, signed_by.as_deref())?;
        let mut transaction = self.inner.db.begin().await?;
        let there = "SELECT digest FROM policy_components WHERE digest = $1";
        if transaction.fetch_one(there, values![digest.as_str()]).await?.is_some() {
            if signed_by.is_some() {
                sign(&mut transaction, &digest, &description).await?;
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
        let values =
            values![digest.as_str(), name, version, description, size, installed_by, self.now_ms(), most];
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

    /// All stored components, the oldest first.
    #[boxed]
    pub async fn policy_components(&self) -> Result<Vec<PolicyComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} ORDER BY installed_at, digest");
        self.inner.db.fetch(sql, values![]).await?.iter().map(component).collect()
    }

    /// The component of this digest.
    #[boxed]
    pub async fn find_policy_component(
        &self,
        digest: &str,
    ) -> Result<Option<PolicyComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE digest = $1");
        let row = self.inner.db.fetch_one(sql, values![digest]).await?;
        row.as_ref().map(component).transpose()
    }

    /// Bytes of the component of this digest; `None` if it is not stored. `Corrupt` if a part of
    /// the bytes is missing.
    #[boxed]
    pub async fn policy_component_bytes(&self, digest: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(row) = self.find_policy_component(digest).await? else { return Ok(None) };
        let mut bytes = BytesMut::with_capacity(usize::try_from(row.size).unwrap_or_default());
        let sql = "SELECT bytes FROM policy_pieces WHERE digest = $1 ORDER BY number";
        for piece in self.inner.db.fetch(sql, values![digest]).await? {
            bytes.extend_from_slice(&piece.columns().bytes("bytes")?);
        }
        if bytes.len() as u64 != row.size {
            return Err(StoreError::Corrupt(format!("the policy {digest} is incomplete")));
        }
        Ok(Some(bytes.freeze()))
    }

    /// Deletes a component. Returns false if a rule uses it, or if it does not exist.
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

/// Writes the description of a component with its signature. Every server then reloads the rules
/// that use it.
async fn sign(transaction: &mut Transaction, digest: &str, description: &str) -> Result<(), StoreError> {
    let update = "UPDATE policy_components SET told = $2 WHERE digest = $1";
    transaction.execute(update, values![digest, description]).await?;
    let sql = "SELECT DISTINCT organization FROM policy_rules WHERE component = $1";
    for row in transaction.fetch(sql, values![digest]).await? {
        renumber(transaction, OrganizationId(row.columns().int("organization")?)).await?;
    }
    Ok(())
}

/// Key of the signature in the component's description. Servers of the previous version preserve it
/// there.
const SIGNED_BY: &str = "signed_by";

fn signed(description: &str, signed_by: Option<&str>) -> Result<String, StoreError> {
    let Some(signed_by) = signed_by else { return Ok(description.to_owned()) };
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(description)
        .map_err(|error| StoreError::Invalid(format!("the description of a policy: {error}")))?;
    fields.insert(SIGNED_BY.to_owned(), signed_by.into());
    Ok(serde_json::Value::Object(fields).to_string())
}

fn component(row: &Row) -> Result<PolicyComponentRow, StoreError> {
    let mut columns = row.columns();
    let description = columns.text("told")?;
    let object: serde_json::Value = serde_json::from_str(&description).unwrap_or_default();
    Ok(PolicyComponentRow {
        signed_by: object.get(SIGNED_BY).and_then(|key| key.as_str()).map(str::to_owned),
        digest: columns.text("digest")?,
        name: columns.text("name")?,
        version: columns.text("version")?,
        description,
        size: columns.unsigned("size")?,
        installed_by: columns.text("installed_by")?,
        installed_at: columns.int("installed_at")?,
    })
}
