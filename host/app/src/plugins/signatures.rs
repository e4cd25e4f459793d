//! Signatures of components: ECDSA on P-256 over SHA-256, as cosign and openssl make them, and the keys that are trusted.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::SecretKey;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use p256::pkcs8::{DecodePublicKey as _, EncodePublicKey as _};
use packhouse_identity::Secret;
use sha2::{Digest as _, Sha256};

/// Bytes of a key's file at most.
const KEY_BYTES: u64 = 64 << 10;

/// Why a key or a signature cannot be used: a sentence without its end.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SignatureError(pub String);

/// A public key that is trusted to vouch for components.
#[derive(Clone)]
pub struct TrustedKey {
    key: VerifyingKey,
    fingerprint: String,
}

impl fmt::Debug for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint)
    }
}

impl TrustedKey {
    fn of(key: VerifyingKey) -> Option<TrustedKey> {
        let der = key.to_public_key_der().ok()?;
        let fingerprint = format!("SHA256:{}", hex::encode(Sha256::digest(der.as_bytes())));
        Some(TrustedKey { key, fingerprint })
    }

    /// Reads a key from PEM (`PUBLIC KEY`).
    pub fn from_pem(pem: &str) -> Option<TrustedKey> {
        TrustedKey::of(VerifyingKey::from_public_key_pem(pem.trim()).ok()?)
    }

    /// `SHA256:` and the hexadecimal SHA-256 of the key as DER (SubjectPublicKeyInfo).
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// The keys that are trusted. With none, digests alone count.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<TrustedKey>);

impl TrustedKeys {
    /// Reads the keys of these PEM files. The error names the file that holds none.
    pub fn read(files: &[PathBuf]) -> Result<TrustedKeys, SignatureError> {
        let key = |file: &PathBuf| {
            let pem = text_of(file, "the trusted key")?;
            let wrong = || {
                let file = file.display();
                SignatureError(format!(
                    "the trusted key {file} is no public key of ECDSA on P-256 in PEM, as `cosign public-key` prints it"
                ))
            };
            TrustedKey::from_pem(&pem).ok_or_else(wrong)
        };
        Ok(TrustedKeys(files.iter().map(key).collect::<Result<_, _>>()?))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the key with this fingerprint is among them.
    pub fn holds(&self, fingerprint: &str) -> bool {
        self.0.iter().any(|key| key.fingerprint == fingerprint)
    }

    /// The fingerprint of the key that made this signature, in base64 of DER, of these bytes; none where no trusted one did. An error
    /// where it is no signature at all.
    pub fn signer(&self, message: &[u8], signature: &str) -> Result<Option<&str>, SignatureError> {
        let wrong =
            || SignatureError("the signature is not an ECDSA signature in DER, written in base64".to_owned());
        let compact: String = signature.split_whitespace().collect();
        let der = STANDARD.decode(compact).map_err(|_| wrong())?;
        let signature = Signature::from_der(&der).map_err(|_| wrong())?;
        let made = |key: &&TrustedKey| key.key.verify(message, &signature).is_ok();
        Ok(self.0.iter().find(made).map(TrustedKey::fingerprint))
    }
}

/// A private key with which components are signed.
pub struct SigningPem(SigningKey);

impl SigningPem {
    /// Reads a private key of ECDSA on P-256 from a PEM file, PKCS#8 (`PRIVATE KEY`) or SEC1 (`EC PRIVATE KEY`), not encrypted.
    pub fn read(file: &Path) -> Result<SigningPem, SignatureError> {
        let pem = Secret::new(text_of(file, "the key")?);
        SigningPem::from_pem(pem.reveal())
            .map_err(|why| SignatureError(format!("the key {} {why}", file.display())))
    }

    fn from_pem(pem: &str) -> Result<SigningPem, &'static str> {
        if pem.contains("ENCRYPTED") {
            return Err(
                "is encrypted, which is not read: give it in plain PEM, as `openssl genpkey -algorithm EC -pkeyopt \
                 ec_paramgen_curve:P-256` writes it",
            );
        }
        // Before the key, openssl writes the name of the curve.
        let from = ["-----BEGIN EC PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"];
        let at = from.iter().find_map(|begin| pem.find(begin));
        let key = at.and_then(|at| pem.get(at..)).and_then(|pem| SecretKey::from_pem(pem.trim()).ok());
        let key = key.ok_or("is no private key of ECDSA on P-256 in PEM (PKCS#8 or SEC1)")?;
        Ok(SigningPem(SigningKey::from(key)))
    }

    /// A signature of these bytes: DER, in base64.
    pub fn sign(&self, message: &[u8]) -> String {
        let signature: Signature = self.0.sign(message);
        STANDARD.encode(signature.to_der().as_bytes())
    }

    /// Its public half's fingerprint.
    pub fn fingerprint(&self) -> String {
        TrustedKey::of(*self.0.verifying_key()).map(|key| key.fingerprint).unwrap_or_default()
    }
}

fn text_of(file: &Path, what: &str) -> Result<String, SignatureError> {
    let failed = |why: String| SignatureError(format!("{what} {} cannot be read: {why}", file.display()));
    let metadata = std::fs::metadata(file).map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > KEY_BYTES {
        return Err(failed("it is no file of a key".to_owned()));
    }
    std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::elliptic_curve::Generate as _;
    use p256::pkcs8::{EncodePrivateKey as _, LineEnding};

    fn trusted(keys: &[&SigningPem]) -> TrustedKeys {
        TrustedKeys(keys.iter().map(|key| TrustedKey::of(*key.0.verifying_key()).unwrap()).collect())
    }

    #[test]
    fn a_signature_is_its_keys_alone() {
        let secret = SecretKey::generate();
        let pkcs8 = secret.to_pkcs8_pem(LineEnding::LF).unwrap();
        let sec1 = secret.to_sec1_pem(LineEnding::LF).unwrap();
        let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        let forms = [pkcs8.to_string(), sec1.to_string(), format!("{parameters}{}", sec1.as_str())];
        let [key, other, third] = forms.map(|pem| SigningPem::from_pem(&pem).unwrap());
        assert_eq!(key.fingerprint(), other.fingerprint());
        assert_eq!(key.fingerprint(), third.fingerprint());
        let stranger = SigningPem(SigningKey::from(SecretKey::generate()));
        let (keys, strangers) = (trusted(&[&stranger, &key]), trusted(&[&stranger]));
        let signature = key.sign(b"component");
        assert_eq!(keys.signer(b"component", &signature), Ok(Some(key.fingerprint().as_str())));
        assert!(keys.holds(&key.fingerprint()) && !strangers.holds(&key.fingerprint()));
        assert_eq!(keys.signer(b"another", &signature), Ok(None));
        assert_eq!(strangers.signer(b"component", &signature), Ok(None));
        for wrong in ["", "x y", "AAAA", &signature[..20]] {
            assert!(keys.signer(b"component", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_said() {
        assert!(
            SigningPem::from_pem("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
                .is_err_and(|why| why.contains("encrypted"))
        );
        assert!(SigningPem::from_pem("hello").is_err());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pub");
        std::fs::write(&file, "hello").unwrap();
        let no_key = TrustedKeys::read(std::slice::from_ref(&file)).unwrap_err();
        assert!(no_key.to_string().contains("key.pub is no public key"), "{no_key}");
        let gone = TrustedKeys::read(&[folder.path().join("none")]).unwrap_err();
        assert!(gone.to_string().contains("cannot be read"), "{gone}");
    }
}
