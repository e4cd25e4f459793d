//! Keys with which repositories sign their contents.

use std::fmt;

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{OrganizationId, now_ms};
use crate::store::Store;

/// Signing key of a format in an organization. Its `Debug` hides the private key, although it is
/// sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKeyRow {
    pub organization: OrganizationId,
    pub format: String,
    /// Key identifier in signatures.
    pub id: String,
    /// SubjectPublicKeyInfo in base64.
    pub public_key: String,
    /// Private key, sealed by the server.
    pub sealed: String,
}

impl fmt::Debug for SigningKeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeyRow")
            .field("format", &self.format)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the organization's key for this format.
    #[boxed]
    pub async fn signing_key(
        &self,
        organization: OrganizationId,
        format: &str,
    ) -> Result<Option<SigningKeyRow>, StoreError> {
        let sql = "SELECT id, public_key, sealed FROM signing_keys WHERE organization = $1 AND format = $2";
        let row = self.inner.db.fetch_one(sql, values![organization.0, format]).await?;
        let read = |row: crate::db::Row| {
            let mut columns = row.columns();
            let (id, public_key, sealed) =
                (columns.text("id")?, columns.text("public_key")?, columns.text("sealed")?);
            Ok(SigningKeyRow { organization, format: format.to_owned(), id, public_key, sealed })
        };
        row.map(read).transpose()
    }

    /// Stores a key unless the organization already has one for the format. Returns the stored key,
    /// which may be another caller's.
    #[boxed]
    pub async fn get_or_insert_signing_key(&self, key: SigningKeyRow) -> Result<SigningKeyRow, StoreError> {
        let insert = "INSERT INTO signing_keys (organization, format, id, public_key, sealed, created_at) \
                      VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (organization, format) DO NOTHING";
        let SigningKeyRow { organization, format, id, public_key, sealed } = key;
        let values = values![
            organization.0,
            format.as_str(),
            id.as_str(),
            public_key.as_str(),
            sealed.as_str(),
            now_ms()
        ];
        self.inner.db.execute(insert, values).await?;
        let stored = self.signing_key(organization, &format).await?;
        stored.ok_or_else(|| StoreError::Corrupt(format!("the signing key of {format} is missing")))
    }
}
