//! Signed statements about versions: provenance, or a signature that vouches for a version.

use crate::{Digest, Error, VersionId};
use serde::Serialize;

/// Signed statement about a version or one of its files, for
/// [`Transaction::attest`](crate::Transaction::attest). The host stores it with the version,
/// verifies it against the operator's trust settings, and shows the result. The format decides
/// whether clients can fetch the statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Version that the statement is about.
    pub id: VersionId,
    /// Listed path of the file that the statement is about; empty for the whole version.
    pub path: String,
    /// Path below the repository's address at which the statement can be fetched; empty if there is
    /// none. Hiding a file of this path removes the statement too.
    pub source: String,
    /// Media type of the bundle.
    pub kind: String,
    /// Expected subject, by `sha256` or `sha512`.
    pub subject: Digest,
    /// Bytes of the statement.
    pub bundle: Vec<u8>,
}

impl Statement {
    /// Largest statement that can be verified, in bytes.
    pub const MAX_BYTES: usize = 256 << 10;
    /// Media type of current Sigstore bundles.
    pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    /// Prefix of the media types of all Sigstore bundles.
    pub const BUNDLES: &str = "application/vnd.dev.sigstore.bundle";
    /// Media type of a signature over a document that names a digest: a [`DetachedSignature`].
    pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
    /// Media type of an envelope with a separate certificate: a [`DetachedSignature`].
    pub const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
    /// Media type of an armored OpenPGP signature.
    pub const PGP: &str = "application/pgp-signature";

    /// Creates a statement of this media type with this expected subject. Bytes over
    /// [`MAX_BYTES`](Self::MAX_BYTES) are left out, because the host would not verify them.
    pub fn new(id: VersionId, kind: impl Into<String>, subject: Digest, bundle: impl Into<Vec<u8>>) -> Self {
        let bundle = Some(bundle.into()).filter(|bundle| bundle.len() <= Self::MAX_BYTES).unwrap_or_default();
        Self { id, path: String::new(), source: String::new(), kind: kind.into(), subject, bundle }
    }

    /// Sets the file that the statement is about.
    pub fn of_file(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Sets the path at which the statement can be fetched.
    pub fn at(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }
}

/// Form of cosign signatures before there were bundles: the layer of a manifest, and its
/// annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DetachedSignature {
    /// Signed document, or the envelope, in base64.
    pub signed: String,
    /// Signature of the document in base64.
    pub signature: String,
    /// Signer's certificate in PEM; empty for a signature with a bare key.
    pub certificate: String,
    /// Intermediate certificates in PEM.
    pub chain: String,
    /// Entry in the transparency log, in JSON.
    pub bundle: String,
}

impl DetachedSignature {
    /// Returns the JSON for [`Statement::bundle`].
    ///
    /// # Errors
    /// [`Error::Other`] if the signature cannot be written as JSON.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        Ok(serde_json::to_vec(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_is_too_large_has_no_bytes() {
        let digest = || Digest::new("sha256", &"0".repeat(64)).expect("a digest");
        let of = |bytes: usize| {
            Statement::new(VersionId::new("lib", "1"), Statement::BUNDLE, digest(), vec![b'x'; bytes])
                .bundle
                .len()
        };
        assert_eq!([of(Statement::MAX_BYTES), of(Statement::MAX_BYTES + 1)], [Statement::MAX_BYTES, 0]);
    }
}
