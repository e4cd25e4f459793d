//! Signatures of components, and the trusted keys. A signature is ECDSA on P-256 over SHA-256, as
//! cosign and openssl make it.

use std::fmt;
use std::path::{Path, PathBuf};

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, ParsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_identity::Secret;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use sha2::{Digest as _, Sha256};

/// Maximum size of a key file, in bytes.
const KEY_BYTES: u64 = 64 << 10;

/// Reason why a key or a signature cannot be used: a sentence without a full stop.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct SignatureError(pub String);

/// A public key whose signatures of components the operator trusts.
#[derive(Clone)]
pub struct TrustedKey {
    key: ParsedPublicKey,
    fingerprint: String,
}

impl fmt::Debug for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint)
    }
}

impl TrustedKey {
    fn of(der: &[u8]) -> Option<TrustedKey> {
        let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, der).ok()?;
        let fingerprint = fingerprint(&key)?;
        Some(TrustedKey { key, fingerprint })
    }

    /// Reads a key from PEM (`PUBLIC KEY`). Returns `None` if the text contains several keys,
    /// because it is unclear which of them the operator trusts.
    pub fn from_pem(pem: &str) -> Option<TrustedKey> {
        let mut keys = SubjectPublicKeyInfoDer::pem_slice_iter(pem.as_bytes());
        let key = keys.next()?.ok()?;
        if keys.next().is_some() { None } else { TrustedKey::of(&key) }
    }

    /// Returns `SHA256:` and the hexadecimal SHA-256 of the key as DER (SubjectPublicKeyInfo).
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn fingerprint<'a>(key: &impl AsDer<PublicKeyX509Der<'a>>) -> Option<String> {
    let der = key.as_der().ok()?;
    Some(format!("SHA256:{}", hex::encode(Sha256::digest(der.as_ref()))))
}

/// The trusted keys. If the list is empty, the server checks only digests, not signatures.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys(Vec<TrustedKey>);

impl TrustedKeys {
    /// Reads the keys from these PEM files. The error names the file that does not contain a key.
    pub fn read(files: &[PathBuf]) -> Result<TrustedKeys, SignatureError> {
        let key = |file: &PathBuf| {
            let pem = text_of(file, "the trusted key")?;
            let wrong = || {
                let file = file.display();
                SignatureError(format!(
                    "the trusted key {file} is not an ECDSA P-256 public key in PEM, as `cosign \
                     public-key` prints it"
                ))
            };
            TrustedKey::from_pem(&pem).ok_or_else(wrong)
        };
        Ok(TrustedKeys(files.iter().map(key).collect::<Result<_, _>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether this is the fingerprint of a trusted key.
    pub fn holds(&self, fingerprint: &str) -> bool {
        self.0.iter().any(|key| key.fingerprint == fingerprint)
    }

    /// Returns the fingerprint of the trusted key that made this signature of the message. Returns
    /// `None` if no trusted key made it. The signature is DER in base64. Fails if the text is not a
    /// signature.
    pub fn signer(&self, message: &[u8], signature: &str) -> Result<Option<&str>, SignatureError> {
        let wrong =
            || SignatureError("the signature is not an ECDSA signature in DER, encoded in base64".to_owned());
        let compact: String = signature.split_whitespace().collect();
        let signature = STANDARD.decode(compact).ok().filter(|der| is_signature(der)).ok_or_else(wrong)?;
        let made = |key: &&TrustedKey| key.key.verify_sig(message, &signature).is_ok();
        Ok(self.0.iter().find(made).map(TrustedKey::fingerprint))
    }
}

/// Reports whether these bytes have the form of an ECDSA signature in DER: a sequence of two
/// integers.
fn is_signature(der: &[u8]) -> bool {
    fn tagged(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
        match der {
            [first, length, rest @ ..] if *first == tag => rest.split_at_checked(usize::from(*length)),
            _ => None,
        }
    }
    tagged(0x30, der).is_some_and(|(sequence, behind)| {
        let second = tagged(0x02, sequence).and_then(|(_, rest)| tagged(0x02, rest));
        behind.is_empty() && second.is_some_and(|(_, rest)| rest.is_empty())
    })
}

/// A private key that signs components.
pub struct SigningPem(EcdsaKeyPair);

impl SigningPem {
    /// Reads an unencrypted ECDSA P-256 private key from a PEM file: PKCS#8 (`PRIVATE KEY`) or SEC1
    /// (`EC PRIVATE KEY`).
    pub fn read(file: &Path) -> Result<SigningPem, SignatureError> {
        let pem = Secret::new(text_of(file, "the key")?);
        SigningPem::from_pem(pem.reveal())
            .map_err(|why| SignatureError(format!("the key {} {why}", file.display())))
    }

    fn from_pem(pem: &str) -> Result<SigningPem, &'static str> {
        if pem.contains("ENCRYPTED") {
            return Err(
                "is encrypted, which is not supported: provide it in plain PEM, as `openssl genpkey \
                 -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes it",
            );
        }
        // The library skips other sections, such as the curve's name that openssl writes before the
        // key.
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok();
        let key = der.and_then(|der| {
            EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der.secret_der()).ok()
        });
        key.map(SigningPem).ok_or("is not an ECDSA P-256 private key in PEM (PKCS#8 or SEC1)")
    }

    /// Signs these bytes. Returns the signature as DER in base64.
    pub fn sign(&self, message: &[u8]) -> Result<String, SignatureError> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        signature
            .map(|signature| STANDARD.encode(signature.as_ref()))
            .map_err(|_| SignatureError("signing with the key failed".to_owned()))
    }

    /// Reports whether this key made the signature. Signing again and comparing does not work,
    /// because two signatures of the same bytes differ.
    pub fn made(&self, message: &[u8], signature: &str) -> bool {
        let key = self.0.public_key().as_der().ok().and_then(|der| TrustedKey::of(der.as_ref()));
        key.is_some_and(|key| matches!(TrustedKeys(vec![key]).signer(message, signature), Ok(Some(_))))
    }

    /// Returns the fingerprint of the public key.
    pub fn fingerprint(&self) -> String {
        fingerprint(self.0.public_key()).unwrap_or_default()
    }
}

fn text_of(file: &Path, what: &str) -> Result<String, SignatureError> {
    let failed = |why: String| SignatureError(format!("{what} {} cannot be read: {why}", file.display()));
    let metadata = std::fs::metadata(file).map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > KEY_BYTES {
        return Err(failed("the file does not contain a key".to_owned()));
    }
    std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key from RFC 6979, section A.2.5, in openssl's older form, and its public key.
    const SEC1: &str = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n\
        -----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIMmvqdhFunUWa1whV2ex1pNOUMPbNuibEnuKYisSD2choAoGCCqGSM49\n\
        AwEHoUQDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Z5A/4QCLi8\n\
        maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==\n\
        -----END EC PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7\n\
        Yfps5mliLmDyn7Z5A/4QCLi8maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==\n\
        -----END PUBLIC KEY-----\n";

    fn pkcs8(pair: &EcdsaKeyPair) -> String {
        let der = STANDARD.encode(pair.to_pkcs8v1().unwrap());
        format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n")
    }

    fn generated() -> SigningPem {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        SigningPem::from_pem(&pkcs8(&pair)).unwrap()
    }

    fn trusted(keys: &[&SigningPem]) -> TrustedKeys {
        TrustedKeys(keys.iter().map(|key| TrustedKey::of(key.0.public_key().as_ref()).unwrap()).collect())
    }

    #[test]
    fn a_key_is_the_same_in_each_of_its_forms() {
        let key = SigningPem::from_pem(SEC1).unwrap();
        let (_, bare) = SEC1.split_once("-----END EC PARAMETERS-----\n").unwrap();
        for pem in [bare, pkcs8(&key.0).as_str()] {
            assert_eq!(SigningPem::from_pem(pem).unwrap().fingerprint(), key.fingerprint());
        }
        assert!(TrustedKey::from_pem(&PUBLIC.repeat(2)).is_none());
        let public = TrustedKey::from_pem(PUBLIC).unwrap();
        assert_eq!(key.fingerprint(), public.fingerprint());
        assert_eq!(
            key.fingerprint(),
            "SHA256:5a7a78cca4a0f420d9bc62bb669c3c2759e39f723d3ae10dcbe0f0815a07ecd4"
        );
        // This is the signature of "sample" from RFC 6979.
        let signature = "MEYCIQDv1IsqrLao/RFA3ZzUXoHWnSyHe1aq+ZHDTQ6oTq83FgIhAPfLHJQtZXxB1DbHobbin2Xz6QDbua/0Bk3Eqy+EOs2o";
        assert_eq!(
            TrustedKeys(vec![public]).signer(b"sample", signature),
            Ok(Some(key.fingerprint().as_str()))
        );
    }

    #[test]
    fn a_signature_belongs_to_one_key_and_message() {
        let (key, untrusted) = (generated(), generated());
        let (keys, other_keys) = (trusted(&[&untrusted, &key]), trusted(&[&untrusted]));
        let signature = key.sign(b"component").unwrap();
        assert_eq!(keys.signer(b"component", &signature), Ok(Some(key.fingerprint().as_str())));
        assert!(keys.holds(&key.fingerprint()) && !other_keys.holds(&key.fingerprint()));
        assert_eq!(keys.signer(b"another", &signature), Ok(None));
        assert_eq!(other_keys.signer(b"component", &signature), Ok(None));
        let longer = STANDARD.encode([STANDARD.decode(&signature).unwrap(), vec![0]].concat());
        for wrong in ["", "x y", "AAAA", &signature[..20], longer.as_str()] {
            assert!(keys.signer(b"component", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_invalid_key_is_reported() {
        assert!(
            SigningPem::from_pem("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
                .is_err_and(|why| why.contains("encrypted"))
        );
        assert!(SigningPem::from_pem("hello").is_err());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pub");
        std::fs::write(&file, "hello").unwrap();
        let no_key = TrustedKeys::read(std::slice::from_ref(&file)).unwrap_err();
        assert!(no_key.to_string().contains("key.pub is not an ECDSA P-256 public key"), "{no_key}");
        let gone = TrustedKeys::read(&[folder.path().join("none")]).unwrap_err();
        assert!(gone.to_string().contains("cannot be read"), "{gone}");
    }
}
