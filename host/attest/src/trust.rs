//! The roots of Sigstore instances, the public keys and the identities that the operator trusts.

use std::fmt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::keys::TrustedKey;
use crate::roots::Root;

/// Maximum size of a file with a root or a key, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Error in the configured trust: a sentence without a full stop.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct TrustError(pub String);

/// An expected signer. The character `*` in either field stands for any text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExpectedIdentity {
    /// Pattern for the issuer of ID tokens.
    pub issuer: String,
    /// Pattern for the identity in the certificate.
    pub identity: String,
}

/// Paths of the files with trusted roots and keys, and the expected identities.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TrustFiles {
    /// Paths of `trusted_root.json` files of Sigstore instances.
    pub roots: Vec<PathBuf>,
    /// Paths of files with public keys in PEM.
    pub keys: Vec<PathBuf>,
    /// Expected signers. If empty, every signer with a certificate from a trusted root is accepted.
    pub identities: Vec<ExpectedIdentity>,
}

/// The roots and keys that were read from the operator's files, and the expected identities.
#[derive(Default)]
pub struct Trust {
    pub(crate) roots: Vec<Root>,
    pub(crate) keys: Vec<TrustedKey>,
    identities: Vec<ExpectedIdentity>,
    fingerprint: String,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} roots, {} keys", self.roots.len(), self.keys.len())
    }
}

impl Trust {
    /// Reads the files. The error names the invalid file.
    pub fn read(files: &TrustFiles) -> Result<Trust, TrustError> {
        let mut trust = Trust { identities: files.identities.clone(), ..Trust::default() };
        let mut hash = Sha256::new();
        let mut count = |kind: &str, text: &str| {
            hash.update(format!("{kind} {}\n", text.len()));
            hash.update(text);
        };
        for file in &files.roots {
            let text = text_of(file, "the trusted root")?;
            let root = Root::read(&text).map_err(|why| of(file, "the trusted root", &why))?;
            count("root", &text);
            trust.roots.push(root);
        }
        for file in &files.keys {
            let text = text_of(file, "the trusted key")?;
            let key = TrustedKey::read(text.trim()).map_err(|why| of(file, "the trusted key", &why))?;
            count("key", &text);
            trust.keys.push(key);
        }
        for expected in &files.identities {
            count("issuer", &expected.issuer);
            count("identity", &expected.identity);
        }
        trust.fingerprint = hex::encode(hash.finalize());
        Ok(trust)
    }

    /// Returns the SHA-256 of all trusted roots, keys and identities, in hex. A stored judgement is
    /// valid as long as this hash does not change.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Reports whether the operator expects this identity from this issuer.
    pub(crate) fn expects(&self, identity: &str, issuer: &str) -> bool {
        let one = |expected: &ExpectedIdentity| {
            matches(&expected.issuer, issuer) && matches(&expected.identity, identity)
        };
        self.identities.is_empty() || self.identities.iter().any(one)
    }
}

fn of(file: &Path, what: &str, why: &str) -> TrustError {
    TrustError(format!("{what} {} cannot be used: {why}", file.display()))
}

fn text_of(file: &Path, what: &str) -> Result<String, TrustError> {
    let size = std::fs::metadata(file).map_err(|error| of(file, what, &error.to_string()))?.len();
    if size > FILE_BYTES {
        return Err(of(file, what, &format!("it has {size} bytes; the limit is {FILE_BYTES}")));
    }
    std::fs::read_to_string(file).map_err(|error| of(file, what, &error.to_string()))
}

/// Reports whether `text` matches `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let yes = [
            ("a", "a"),
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*b*c", "axxbc"),
            ("*b", "ab"),
        ];
        let no = [("a", "ab"), ("a", ""), ("a*c", "ab"), ("a*b*c", "ac"), ("ab*ba", "aba"), ("", "a")];
        assert!(yes.iter().all(|(pattern, text)| matches(pattern, text)), "{yes:?}");
        for (pattern, text) in no {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn an_invalid_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("root.json");
        let trust = || Trust::read(&TrustFiles { roots: vec![file.clone()], ..TrustFiles::default() });
        assert!(trust().unwrap_err().to_string().contains("root.json"));
        for wrong in
            ["{", "{}", r#"{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}"#]
        {
            std::fs::write(&file, wrong).unwrap();
            assert!(trust().is_err(), "{wrong}");
        }
        let keys = TrustFiles { keys: vec![file.clone()], ..TrustFiles::default() };
        assert!(Trust::read(&keys).unwrap_err().to_string().contains("the trusted key"));
    }

    #[test]
    fn the_fingerprint_depends_on_the_trust() {
        let of = |identity: &str| {
            let identities = vec![ExpectedIdentity { issuer: "*".to_owned(), identity: identity.to_owned() }];
            Trust::read(&TrustFiles { identities, ..TrustFiles::default() }).unwrap().fingerprint().to_owned()
        };
        let none = Trust::read(&TrustFiles::default()).unwrap().fingerprint().to_owned();
        assert_eq!(of("a"), of("a"));
        assert!(of("a") != of("b") && of("a") != none && !none.is_empty());
    }
}
