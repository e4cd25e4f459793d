//! Statements that were signed by a key, without a certificate: by the keys that are trusted. A key that the operator names vouches by
//! itself: no log needs to know of what it signs.

use sha2::{Digest as _, Sha256};
use sigstore_verify::PublicKeyVerificationPolicy;
use sigstore_verify::crypto::{KeyAlgorithm, verify_signature, verify_signature_prehashed};
use sigstore_verify::types::{DerPublicKey, HashAlgorithm, SignatureContent, Statement};

use crate::facts::Facts;
use crate::roots::{Case, Root};
use crate::{Judgement, Verdict};

/// The only type of what DSSE envelopes hold that says what it is about.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A key that is trusted.
pub(crate) struct Key {
    key: DerPublicKey,
    algorithm: KeyAlgorithm,
    /// `SHA256:` and the hexadecimal SHA-256 of the key as DER.
    fingerprint: String,
}

impl Key {
    /// From PEM (`PUBLIC KEY`).
    pub(crate) fn read(pem: &str) -> Result<Key, String> {
        let key = DerPublicKey::from_pem(pem).map_err(|error| error.to_string())?;
        let algorithm = KeyAlgorithm::from_spki(&key).map_err(|error| error.to_string())?;
        let fingerprint = format!("SHA256:{}", hex::encode(Sha256::digest(key.as_bytes())));
        Ok(Key { key, algorithm, fingerprint })
    }

    /// Whether this key has made the signature, whatever it is of.
    fn signed(&self, case: &Case<'_>) -> bool {
        match &case.bundle.content {
            SignatureContent::DsseEnvelope(envelope) => {
                let scheme = self.algorithm.default_signing_scheme();
                verify_signature(&self.key, &envelope.pae(), &envelope.signature.sig, scheme).is_ok()
            }
            SignatureContent::MessageSignature(message) => {
                let scheme = match &message.message_digest {
                    Some(digest) => self.algorithm.resolve_signing_scheme(digest.algorithm).ok(),
                    None => Some(self.algorithm.default_signing_scheme()),
                };
                let Some(scheme) = scheme else { return false };
                match case.message {
                    Some(signed) => verify_signature(&self.key, signed, &message.signature, scheme).is_ok(),
                    None => {
                        let digest = case.subject.digest();
                        scheme.hash_algorithm() == Some(digest.algorithm())
                            && verify_signature_prehashed(
                                &self.key,
                                digest.as_bytes(),
                                &message.signature,
                                scheme,
                            )
                            .is_ok()
                    }
                }
            }
            _ => false,
        }
    }
}

/// Judges a statement by a key.
pub(crate) fn judge(keys: &[Key], roots: &[Root], case: &Case<'_>, facts: Facts) -> Judgement {
    if keys.is_empty() {
        let reason = "It is signed by a key, and no key is trusted here by which it could be verified.";
        return Judgement::of(Verdict::Unverifiable, reason, facts);
    }
    if !is_about(case) {
        return Judgement::of(Verdict::Failed, case.subject.mismatch(), facts);
    }
    let Some(key) = keys.iter().find(|key| key.signed(case)) else {
        let reason = "It is signed by a key, and by none of those that are trusted here.";
        return Judgement::of(Verdict::Failed, reason, facts);
    };
    let facts = Facts { key: key.fingerprint.clone(), signed_at: logged_at(roots, key, case), ..facts };
    Judgement::of(Verdict::Verified, "", facts)
}

/// Whether what was signed says that it is about the subject. A signature of the subject's own bytes says so by holding.
fn is_about(case: &Case<'_>) -> bool {
    match &case.bundle.content {
        SignatureContent::DsseEnvelope(envelope) if envelope.payload_type == IN_TOTO => {
            let statement = serde_json::from_slice::<Statement>(envelope.payload.as_bytes());
            statement.is_ok_and(|statement| case.subject.is_of(&statement))
        }
        SignatureContent::MessageSignature(message) => match (&message.message_digest, case.message) {
            (Some(said), None) => {
                let digest = case.subject.digest();
                said.algorithm == digest.algorithm() && said.digest == digest.as_bytes()
            }
            (Some(said), Some(signed)) => {
                said.algorithm == HashAlgorithm::Sha2256 && said.digest == &Sha256::digest(signed)[..]
            }
            (None, _) => true,
        },
        _ => false,
    }
}

/// When a log that is trusted has taken it, where it says so.
fn logged_at(roots: &[Root], key: &Key, case: &Case<'_>) -> Option<i64> {
    if case.bundle.verification_material.tlog_entries.is_empty() {
        return None;
    }
    let policy = PublicKeyVerificationPolicy::new(key.key.clone());
    let times = roots.iter().filter_map(|root| root.times(case, &policy));
    times.min()
}
