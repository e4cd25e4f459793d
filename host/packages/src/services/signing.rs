//! Signatures of repository content: ECDSA over P-256 with SHA-256 (FIPS 186-5). Each format in an
//! organization has its own key, which the server creates on first use. The database contains the
//! private key only in sealed form. The unsealed key is in memory only during a call.

use aws_lc_rs::encoding::{AsBigEndian as _, AsDer as _, EcPrivateKeyBin, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_runtime::{PublicKey, ServiceError, Signature};
use packhouse_store::{OrganizationId, SigningKeyRow};
use sha2::{Digest as _, Sha256};

use super::CallServices;
use packhouse_identity::Secret;

/// Name of this type of key, which clients see.
const KIND: &str = "ecdsa-sha2-nistp256";
/// Size of an uncompressed point of the curve, in bytes. A public key in DER ends with such a
/// point.
const POINT_BYTES: usize = 65;

/// Returns the public key of the call's format and organization.
pub(super) async fn keys(services: &CallServices) -> Result<Vec<PublicKey>, ServiceError> {
    let row = key(services).await?;
    Ok(vec![PublicKey { id: row.id, kind: KIND.to_owned(), key: row.public_key, expires: None }])
}

pub(super) async fn sign(services: &CallServices, message: &[u8]) -> Result<Signature, ServiceError> {
    let row = key(services).await?;
    let opened = services.app.sealer.open(&purpose(row.organization, &row.format), &row.sealed);
    let secret = opened.map_err(|error| ServiceError::Other(error.to_string()))?;
    let key = StoredKeyPair { secret, public: row.public_key }.pair().ok_or_else(broken)?;
    let signature = key.sign(&SystemRandom::new(), message).map_err(|_| broken())?;
    Ok(Signature { key_id: row.id, value: signature.as_ref().to_vec() })
}

/// Returns the key of the call's format and organization. Creates the key on first use.
async fn key(services: &CallServices) -> Result<SigningKeyRow, ServiceError> {
    let (store, organization, format) = (&services.app.store, services.caller.organization, &services.format);
    if let Some(row) = store.signing_key(organization, format).await? {
        return Ok(row);
    }
    let StoredKeyPair { secret, public } = StoredKeyPair::generate().ok_or_else(broken)?;
    let der = STANDARD.decode(&public).map_err(|_| broken())?;
    let sealed = services.app.sealer.seal(&purpose(organization, format), &secret);
    let row = SigningKeyRow {
        organization,
        format: format.clone(),
        id: format!("SHA256:{}", STANDARD.encode(Sha256::digest(der))),
        public_key: public,
        sealed: sealed.map_err(|error| ServiceError::Other(error.to_string()))?,
    };
    Ok(store.get_or_insert_signing_key(row).await?)
}

/// A key pair in the form in which the database stores it.
struct StoredKeyPair {
    /// The private scalar in hex.
    secret: Secret,
    /// The public key as SubjectPublicKeyInfo in base64.
    public: String,
}

impl StoredKeyPair {
    fn generate() -> Option<StoredKeyPair> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).ok()?;
        let secret: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().ok()?;
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
        Some(StoredKeyPair {
            secret: Secret::new(hex::encode(secret.as_ref())),
            public: STANDARD.encode(public.as_ref()),
        })
    }

    fn pair(&self) -> Option<EcdsaKeyPair> {
        let secret = hex::decode(self.secret.reveal()).ok()?;
        let public = STANDARD.decode(&self.public).ok()?;
        let point = public.last_chunk::<POINT_BYTES>()?;
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, &secret, point).ok()
    }
}

fn purpose(organization: OrganizationId, format: &str) -> String {
    format!("signing {} {format}", organization.0)
}

fn broken() -> ServiceError {
    ServiceError::Other("the signing key cannot be used".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

    /// Key pair from RFC 6979, section A.2.5.
    const SCALAR: &str = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
    const PUBLIC: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200\
        0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6\
        7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299";

    #[track_caller]
    fn signs(key: &StoredKeyPair) {
        let signature = key.pair().unwrap().sign(&SystemRandom::new(), b"message").unwrap();
        let public = STANDARD.decode(&key.public).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, public);
        public.verify(b"message", signature.as_ref()).unwrap();
        assert!(public.verify(b"other", signature.as_ref()).is_err());
    }

    #[test]
    fn a_signature_is_checked_with_the_public_half() {
        signs(&StoredKeyPair::generate().unwrap());
    }

    #[test]
    fn a_stored_key_signs_and_halves_of_two_keys_do_not() {
        let stored = || StoredKeyPair {
            secret: Secret::new(SCALAR),
            public: STANDARD.encode(hex::decode(PUBLIC).unwrap()),
        };
        signs(&stored());
        let other = StoredKeyPair::generate().unwrap();
        assert!(StoredKeyPair { secret: other.secret, ..stored() }.pair().is_none());
        assert!(StoredKeyPair { public: String::new(), ..stored() }.pair().is_none());
    }
}
