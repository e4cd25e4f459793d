//! Signatures of what repositories hold: ECDSA over P-256 and SHA-256 (FIPS 186-5), by a key of each format and organization that
//! is made when it is first asked for. The secret half is sealed in the database and in memory for one call alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::SigningKey;
use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::EncodePublicKey as _;
use packhouse_runtime::{PublicKey, ServiceError, Signature};
use packhouse_store::{OrganizationId, SigningKeyRow};
use sha2::{Digest as _, Sha256};

use super::CallServices;
use packhouse_identity::Secret;

/// How clients name the kind of key.
const KIND: &str = "ecdsa-sha2-nistp256";
/// Of 256 random bits nearly all are a key; that none of so many is does not happen.
const ATTEMPTS: u32 = 16;

/// The public half of the key.
pub(super) async fn keys(services: &CallServices) -> Result<Vec<PublicKey>, ServiceError> {
    let row = key(services).await?;
    Ok(vec![PublicKey { id: row.id, kind: KIND.to_owned(), key: row.public_key, expires: None }])
}

/// Signs a message.
pub(super) async fn sign(services: &CallServices, message: &[u8]) -> Result<Signature, ServiceError> {
    let row = key(services).await?;
    let opened = services.app.sealer.open(&purpose(row.organization, &row.format), &row.sealed);
    let secret = opened.map_err(|error| ServiceError::Other(error.to_string()))?;
    let bytes = hex::decode(secret.reveal()).map_err(|_| broken())?;
    let key = SigningKey::from_slice(&bytes).map_err(|_| broken())?;
    let signature: p256::ecdsa::Signature = key.sign(message);
    Ok(Signature { key_id: row.id, value: signature.to_der().as_bytes().to_vec() })
}

/// The key of the call's format and organization, made where there is none.
async fn key(services: &CallServices) -> Result<SigningKeyRow, ServiceError> {
    let (store, organization, format) = (&services.app.store, services.caller.organization, &services.format);
    if let Some(row) = store.signing_key(organization, format).await? {
        return Ok(row);
    }
    let key = fresh().ok_or_else(broken)?;
    let public = key.verifying_key().to_public_key_der().map_err(|_| broken())?;
    let secret = Secret::new(hex::encode(key.to_bytes()));
    let sealed = services.app.sealer.seal(&purpose(organization, format), &secret);
    let row = SigningKeyRow {
        organization,
        format: format.clone(),
        id: format!("SHA256:{}", STANDARD.encode(Sha256::digest(public.as_bytes()))),
        public_key: STANDARD.encode(public.as_bytes()),
        sealed: sealed.map_err(|error| ServiceError::Other(error.to_string()))?,
    };
    Ok(store.keep_signing_key(row).await?)
}

fn fresh() -> Option<SigningKey> {
    (0..ATTEMPTS).find_map(|_| SigningKey::from_slice(&rand::random::<[u8; 32]>()).ok())
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
    use p256::ecdsa::signature::Verifier as _;
    use p256::pkcs8::DecodePublicKey as _;

    #[test]
    fn a_signature_is_checked_with_the_public_half() {
        let key = fresh().unwrap();
        let public = key.verifying_key().to_public_key_der().unwrap();
        let signature: p256::ecdsa::Signature = key.sign(b"message");
        let der = signature.to_der();
        let read = p256::ecdsa::VerifyingKey::from_public_key_der(public.as_bytes()).unwrap();
        let signature = p256::ecdsa::Signature::from_der(der.as_bytes()).unwrap();
        assert!(read.verify(b"message", &signature).is_ok() && read.verify(b"other", &signature).is_err());
    }
}
