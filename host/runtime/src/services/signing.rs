//! Signatures of a repository's contents.

use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// Server side of the interface `signing`. By default the service is not available.
pub trait SigningService: Send + Sync + 'static {
    /// Public keys of the repository's format and organization, starting with the one in use.
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        not_available("signing")
    }

    /// Returns an ECDSA signature (ASN.1 DER) over SHA-256 of `message`.
    fn sign<'a>(&'a self, _target: &'a RepositoryView, _message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        not_available("signing")
    }
}

/// A key for the verification of signatures.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// Identifier of the key in signatures.
    pub id: String,
    /// Type of the key, such as `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// SubjectPublicKeyInfo of the key in base64.
    pub key: String,
    /// Expiry time in ms since 1970.
    pub expires: Option<u64>,
}

/// A signature and the id of its key.
#[derive(Clone, Debug)]
pub struct Signature {
    pub key_id: String,
    pub value: Vec<u8>,
}
