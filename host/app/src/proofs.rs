//! Responses to ACME challenges, which prove control of a host name. The database stores them,
//! because the certificate authority may connect to any of the servers. The server sends them in a
//! TLS handshake (RFC 8737) or over plain HTTP (RFC 8555, section 8.3).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use packhouse_store::{AcmeProof, Store, StoreError};
use packhouse_wire::tls::{Challenges, provider};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};

use crate::boxed;

/// Lifetime of cached proofs. Within this time, unauthenticated clients cause at most one database
/// statement.
pub const PROOFS_FRESH: Duration = Duration::from_millis(250);

/// Proofs that a certificate authority may request.
pub struct Proofs {
    store: Store,
    read: Mutex<Option<(Instant, Arc<[AcmeProof]>)>>,
}

impl Proofs {
    pub fn new(store: Store) -> Proofs {
        Proofs { store, read: Mutex::default() }
    }

    async fn all(&self) -> Result<Arc<[AcmeProof]>, StoreError> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, proofs)) = read.filter(|(at, _)| at.elapsed() < PROOFS_FRESH) {
            return Ok(proofs);
        }
        let proofs: Arc<[AcmeProof]> = self.store.acme_proofs().await?.into();
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), Arc::clone(&proofs)));
        Ok(proofs)
    }

    /// Returns the response for the token in the path of a plain HTTP request.
    #[boxed]
    pub async fn over_http(&self, token: &str) -> Option<String> {
        let proofs = self.all().await.ok()?;
        proofs.iter().find(|proof| proof.token == token).map(|proof| proof.key_authorization.clone())
    }
}

impl Challenges for Proofs {
    fn proof(&self, name: &str) -> BoxFuture<'_, Option<Arc<CertifiedKey>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let proofs = self.all().await.ok()?;
            let proof = proofs.iter().find(|proof| proof.domain == name)?;
            match certificate(&name, &proof.key_authorization) {
                Ok(certificate) => Some(Arc::new(certificate)),
                Err(error) => {
                    tracing::warn!(%error, "could not create the certificate that proves a host name");
                    None
                }
            }
        })
    }
}

/// Creates a certificate as RFC 8737, section 3 defines it. It contains only this name, and the
/// digest of the key authorization.
fn certificate(name: &str, key_authorization: &str) -> anyhow::Result<CertifiedKey> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&Sha256::digest(key_authorization))];
    let certificate = params.self_signed(&key)?;
    let secret = PrivatePkcs8KeyDer::from(key.serialize_der());
    let key = provider().key_provider.load_private_key(secret.into())?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_a_certificate_of_the_name() {
        let made = certificate("a.example", "token.thumbprint").unwrap();
        let digest = Sha256::digest("token.thumbprint");
        let (certificate, key) = (made.cert.first().unwrap(), made.key.public_key().unwrap());
        for part in [digest.as_slice(), key.as_ref()] {
            assert!(certificate.windows(part.len()).any(|window| window == part));
        }
    }
}
