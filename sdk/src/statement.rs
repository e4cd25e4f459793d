//! Signed statements about versions: who built one and from what, or that somebody vouches for it.

use crate::{Digest, Error, VersionId};
use serde::Serialize;

/// A signed statement about a version or a file of it, for [`Transaction::attest`](crate::Transaction::attest). The host keeps it with the
/// version, judges it by what its operator trusts, and shows what it is worth; what clients are served of it stays the format's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The version that it is about.
    pub id: VersionId,
    /// The path of the file that it is about, as it is shown; empty: the version.
    pub path: String,
    /// The path below the repository's address where its bytes are fetched; empty where there is none. Hidden as a file, it takes the
    /// statement with it.
    pub source: String,
    /// Its form, a media type.
    pub kind: String,
    /// What it is to be about: by `sha256` or `sha512`.
    pub subject: Digest,
    /// The statement itself.
    pub bundle: Vec<u8>,
}

impl Statement {
    /// Bytes of one that can be judged.
    pub const MAX_BYTES: usize = 256 << 10;
    /// The form of Sigstore's bundles, as they are now.
    pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    /// How the media types of Sigstore's bundles begin.
    pub const BUNDLES: &str = "application/vnd.dev.sigstore.bundle";
    /// A signature of a document that names a digest: a [`DetachedSignature`].
    pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
    /// An envelope beside its certificate: a [`DetachedSignature`].
    pub const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
    /// A signature of OpenPGP, armored.
    pub const PGP: &str = "application/pgp-signature";

    /// A statement of this form that is to be about this digest. One that is too large to be judged is stated without its bytes.
    pub fn new(id: VersionId, kind: impl Into<String>, subject: Digest, bundle: impl Into<Vec<u8>>) -> Self {
        let bundle = Some(bundle.into()).filter(|bundle| bundle.len() <= Self::MAX_BYTES).unwrap_or_default();
        Self { id, path: String::new(), source: String::new(), kind: kind.into(), subject, bundle }
    }

    /// The file that it is about.
    pub fn of_file(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Where its bytes are fetched.
    pub fn at(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }
}

/// What cosign wrote before there were bundles: a layer of a manifest, and what the annotations of that say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DetachedSignature {
    /// What was signed, or the envelope: base64.
    pub signed: String,
    /// The signature of a document: base64.
    pub signature: String,
    /// The signer's certificate, as PEM; empty: it was signed by a key.
    pub certificate: String,
    /// Those between it and the root, as PEM.
    pub chain: String,
    /// The log's entry, in JSON.
    pub bundle: String,
}

impl DetachedSignature {
    /// As statements hold it.
    ///
    /// # Errors
    /// [`Error::Other`] when it cannot be written as JSON.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        Ok(serde_json::to_vec(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_stated_without_its_bytes() {
        let digest = || Digest::new("sha256", &"0".repeat(64)).expect("a digest");
        let of = |bytes: usize| {
            Statement::new(VersionId::new("lib", "1"), Statement::BUNDLE, digest(), vec![b'x'; bytes])
                .bundle
                .len()
        };
        assert_eq!([of(Statement::MAX_BYTES), of(Statement::MAX_BYTES + 1)], [Statement::MAX_BYTES, 0]);
    }
}
