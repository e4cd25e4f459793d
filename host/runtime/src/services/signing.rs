//! Signatures of a repository's contents.

use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// The server's side of the interface `signing`. Every default is that the service is not available.
pub trait SigningService: Send + Sync + 'static {
    /// Public keys of the repository's format and organization, the one in use first.
    fn keys<'a>(&'a self, _target: &'a RepositoryView) -> ServiceFuture<'a, Vec<PublicKey>> {
        not_available("signing")
    }

    /// An ECDSA signature (ASN.1 DER) over SHA-256 of `message`.
    fn sign<'a>(&'a self, _target: &'a RepositoryView, _message: &'a [u8]) -> ServiceFuture<'a, Signature> {
        not_available("signing")
    }
}

/// A key by which signatures may be checked.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// Names it in signatures.
    pub id: String,
    /// As `ecdsa-sha2-nistp256`.
    pub kind: String,
    /// Its SubjectPublicKeyInfo in base64.
    pub key: String,
    /// In ms since 1970.
    pub expires: Option<u64>,
}

/// A signature and the key it is by.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Of the public key.
    pub key_id: String,
    /// ASN.1 DER.
    pub value: Vec<u8>,
}
