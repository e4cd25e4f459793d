//! Verification of statements that were signed with a key and have no certificate. A key that the
//! operator trusts is sufficient: the statement needs no transparency log.

use sha2::{Digest as _, Sha256};
use sigstore_verify::PublicKeyVerificationPolicy;
use sigstore_verify::crypto::{KeyAlgorithm, verify_signature, verify_signature_prehashed};
use sigstore_verify::types::{DerPublicKey, HashAlgorithm, SignatureContent, Statement};

use crate::facts::StatementFacts;
use crate::roots::{Root, StatementCase};
use crate::{Judgement, Verdict};

/// Payload type of in-toto statements, the only DSSE payloads that name their subject.
const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A public key that the operator trusts.
pub(crate) struct TrustedKey {
    key: DerPublicKey,
    algorithm: KeyAlgorithm,
    /// `SHA256:` and the hexadecimal SHA-256 of the DER-encoded key.
    fingerprint: String,
}

impl TrustedKey {
    /// Parses a key in PEM (`PUBLIC KEY`).
    pub(crate) fn read(pem: &str) -> Result<TrustedKey, String> {
        let key = DerPublicKey::from_pem(pem).map_err(|error| error.to_string())?;
        let algorithm = KeyAlgorithm::from_spki(&key).map_err(|error| error.to_string())?;
        let fingerprint = format!("SHA256:{}", hex::encode(Sha256::digest(key.as_bytes())));
        Ok(TrustedKey { key, algorithm, fingerprint })
    }

    /// Reports whether this key made the signature. Does not check the subject of the statement.
    fn signed(&self, case: &StatementCase<'_>) -> bool {
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

/// Judges a statement that was signed with a key.
pub(crate) fn judge(
    keys: &[TrustedKey],
    roots: &[Root],
    case: &StatementCase<'_>,
    facts: StatementFacts,
) -> Judgement {
    if keys.is_empty() {
        let reason = "It is signed by a key, and this server has no trusted keys.";
        return Judgement::of(Verdict::Unverifiable, reason, facts);
    }
    if !is_about(case) {
        return Judgement::of(Verdict::Failed, case.subject.mismatch(), facts);
    }
    let Some(key) = keys.iter().find(|key| key.signed(case)) else {
        let reason = "It is signed by a key that this server does not trust.";
        return Judgement::of(Verdict::Failed, reason, facts);
    };
    let facts =
        StatementFacts { key: key.fingerprint.clone(), signed_at: logged_at(roots, key, case), ..facts };
    Judgement::of(Verdict::Verified, "", facts)
}

/// Reports whether the signed content names the subject. A valid signature of the subject's own
/// bytes needs no name.
fn is_about(case: &StatementCase<'_>) -> bool {
    match &case.bundle.content {
        SignatureContent::DsseEnvelope(envelope) if envelope.payload_type == IN_TOTO => {
            let statement = serde_json::from_slice::<Statement>(envelope.payload.as_bytes());
            statement.is_ok_and(|statement| case.subject.is_of(&statement))
        }
        SignatureContent::MessageSignature(message) => match (&message.message_digest, case.message) {
            (Some(stated), None) => {
                let digest = case.subject.digest();
                stated.algorithm == digest.algorithm() && stated.digest == digest.as_bytes()
            }
            (Some(stated), Some(signed)) => {
                stated.algorithm == HashAlgorithm::Sha2256 && stated.digest == &Sha256::digest(signed)[..]
            }
            (None, _) => true,
        },
        _ => false,
    }
}

/// Returns the time at which a trusted log or timestamp authority recorded the statement. Returns
/// `None` if the statement has no log entry.
fn logged_at(roots: &[Root], key: &TrustedKey, case: &StatementCase<'_>) -> Option<i64> {
    if case.bundle.verification_material.tlog_entries.is_empty() {
        return None;
    }
    let policy = PublicKeyVerificationPolicy::new(key.key.clone());
    let times = roots.iter().filter_map(|root| root.times(case, &policy));
    times.min()
}
