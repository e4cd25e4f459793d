//! Plugin components, stored once by digest. Their bytes are split into pieces, so that no row is
//! too large for a backup or a driver.

use bytes::{Bytes, BytesMut};

use super::PLUGIN_SPARES;
use super::rows::{format_for_change, next_number};
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, Transaction, values};
use crate::error::StoreError;
use crate::store::Store;

/// Size of a piece in bytes.
const PIECE: usize = 512 << 10;

/// A component to be stored.
#[derive(Clone, Debug)]
pub struct NewComponent {
    /// `sha256:` and the digest of the bytes in hex.
    pub digest: String,
    /// Format that the component declares.
    pub format: String,
    /// Description that the component declares, as a JSON object.
    pub description: String,
    /// Source of the component, such as a file or a URL.
    pub source: String,
    /// Identity of the signer, if it is signed.
    pub signed_by: Option<String>,
    /// Content of the whole component.
    pub bytes: Bytes,
}

/// A stored component, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentRow {
    /// `sha256:` and the digest of the bytes in hex.
    pub digest: String,
    /// Format that the component declares.
    pub format: String,
    /// Description that the component declares, as a JSON object.
    pub description: String,
    /// Source of the component, such as a file or a URL.
    pub source: String,
    /// Identity of the signer, if it is signed.
    pub signed_by: Option<String>,
    /// Size of the component in bytes.
    pub size: u64,
    /// Time of the first installation, in ms since 1970.
    pub installed_at: i64,
}

const COLUMNS: &str = "digest, format, told, source, signed_by, size, installed_at";

impl Store {
    /// Stores a component; returns false if it exists already, and changes nothing then. Deletes
    /// unused components of the same format over the limit, the oldest first. Active, recently
    /// active and pinned components count as used.
    #[boxed]
    pub async fn install_component(
        &self,
        component: NewComponent,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        next_number(&mut transaction).await?;
        let format = component.format.clone();
        if !keep(&mut transaction, component, self.now_ms()).await? {
            return Ok(false);
        }
        forget_spares(&mut transaction, &format).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Updates the source and the signer of a stored component.
    #[boxed]
    pub async fn renew_component(
        &self,
        digest: &str,
        source: &str,
        signed_by: Option<&str>,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let set = "UPDATE plugin_components SET source = $2, signed_by = $3 WHERE digest = $1";
        transaction.execute(set, values![digest, source, signed_by]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// All stored components, ordered by format and age, the oldest first.
    #[boxed]
    pub async fn components(&self) -> Result<Vec<ComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_components ORDER BY format, installed_at, digest");
        let rows = self.inner.db.fetch_uncounted(sql, values![]).await?;
        rows.iter().map(component).collect()
    }

    /// The component of this digest.
    #[boxed]
    pub async fn find_component(&self, digest: &str) -> Result<Option<ComponentRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_components WHERE digest = $1");
        let row = self.inner.db.fetch_one(sql, values![digest]).await?;
        row.as_ref().map(component).transpose()
    }

    /// Bytes of the component of this digest; `None` if it is not stored. `Corrupt` if a part of
    /// the bytes is missing.
    #[boxed]
    pub async fn component_bytes(&self, digest: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(row) = self.find_component(digest).await? else { return Ok(None) };
        let mut bytes = BytesMut::with_capacity(usize::try_from(row.size).unwrap_or_default());
        for number in 0_i64.. {
            let sql = "SELECT bytes FROM plugin_pieces WHERE digest = $1 AND number = $2";
            match self.inner.db.fetch_one(sql, values![digest, number]).await? {
                Some(piece) => bytes.extend_from_slice(&piece.columns().bytes("bytes")?),
                None => break,
            }
        }
        if bytes.len() as u64 != row.size {
            return Err(StoreError::Corrupt(format!("the component {digest} is incomplete")));
        }
        Ok(Some(bytes.freeze()))
    }
}

/// Stores a component in this transaction; returns false if it exists already.
pub(super) async fn keep(
    transaction: &mut Transaction,
    component: NewComponent,
    now: i64,
) -> Result<bool, StoreError> {
    let insert = "INSERT INTO plugin_components (digest, format, told, source, signed_by, size, installed_at) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (digest) DO NOTHING";
    let NewComponent { digest, format, description, source, signed_by, bytes } = component;
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let values = values![digest.as_str(), format, description, source, signed_by, size, now];
    if transaction.execute(insert, values).await? == 0 {
        return Ok(false);
    }
    for (number, piece) in (0_i64..).zip(bytes.chunks(PIECE)) {
        let insert = "INSERT INTO plugin_pieces (digest, number, bytes) VALUES ($1, $2, $3)";
        transaction.execute(insert, values![digest.as_str(), number, piece]).await?;
    }
    Ok(true)
}

async fn forget_spares(transaction: &mut Transaction, format: &str) -> Result<(), StoreError> {
    let state = format_for_change(transaction, format).await?;
    let list = "SELECT digest FROM plugin_components WHERE format = $1 \
                AND digest NOT IN (SELECT plugin FROM repositories WHERE plugin IS NOT NULL) \
                ORDER BY installed_at DESC, digest";
    let mut spares = Vec::new();
    for row in transaction.fetch(list, values![format]).await? {
        let digest = row.columns().text("digest")?;
        let is_used = state.active.as_ref() == Some(&digest) || state.history.contains(&digest);
        if !is_used {
            spares.push(digest);
        }
    }
    for digest in spares.into_iter().skip(PLUGIN_SPARES) {
        transaction.execute("DELETE FROM plugin_pieces WHERE digest = $1", values![digest.as_str()]).await?;
        transaction.execute("DELETE FROM plugin_components WHERE digest = $1", values![digest]).await?;
    }
    Ok(())
}

fn component(row: &Row) -> Result<ComponentRow, StoreError> {
    let mut columns = row.columns();
    Ok(ComponentRow {
        digest: columns.text("digest")?,
        format: columns.text("format")?,
        description: columns.text("told")?,
        source: columns.text("source")?,
        signed_by: columns.opt_text("signed_by")?,
        size: columns.unsigned("size")?,
        installed_at: columns.int("installed_at")?,
    })
}
