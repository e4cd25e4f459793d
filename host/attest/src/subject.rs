//! The subject that a statement must be about, identified by its digest.

use std::fmt;

use serde_json::Value;
use sigstore_verify::types::{ArtifactDigest, HashAlgorithm, Sha256Hash, Sha512Hash, Statement};

/// A SHA-256 or SHA-512 digest, and its text form.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    digest: ArtifactDigest,
    text: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Subject {
    /// Parses `sha256:` or `sha512:` and lower-case hex.
    pub(crate) fn parse(text: &str) -> Option<Subject> {
        let (algorithm, hex) = text.split_once(':')?;
        let algorithm = match algorithm {
            "sha256" => HashAlgorithm::Sha2256,
            "sha512" => HashAlgorithm::Sha2512,
            _ => return None,
        };
        let bytes = hex::decode(hex).ok()?;
        let digest = ArtifactDigest::new(algorithm, bytes).ok()?;
        Some(Subject { digest, text: text.to_owned() })
    }

    pub(crate) fn digest(&self) -> ArtifactDigest {
        self.digest.clone()
    }

    /// Returns the message for a statement about another digest.
    pub(crate) fn mismatch(&self) -> String {
        format!("It is about another digest than {self}.")
    }

    /// Reports whether this digest is one of the subjects of an in-toto statement.
    pub(crate) fn is_of(&self, statement: &Statement) -> bool {
        let bytes = self.digest.as_bytes();
        match self.digest.algorithm() {
            HashAlgorithm::Sha2256 => {
                Sha256Hash::try_from(bytes).is_ok_and(|hash| statement.matches_sha256(&hash))
            }
            _ => Sha512Hash::try_from(bytes).is_ok_and(|hash| statement.matches_sha512(&hash)),
        }
    }

    /// Reports whether a "simple signing" document names this digest. cosign's older signatures
    /// cover such documents.
    pub(crate) fn is_named_by(&self, message: &[u8]) -> bool {
        let document: Value = serde_json::from_slice(message).unwrap_or_default();
        let named = document.pointer("/critical/image/docker-manifest-digest").and_then(Value::as_str);
        named == Some(self.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn a_digest_has_a_known_algorithm_and_the_right_length() {
        assert!(Subject::parse(&format!("sha256:{}", "0".repeat(64))).is_some());
        assert!(Subject::parse(&format!("sha512:{}", "0".repeat(128))).is_some());
        for wrong in ["", "sha256", "sha256:00", "md5:00000000000000000000000000000000", "sha512:zz"] {
            assert!(Subject::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_signed_document_is_about_the_digest_that_it_names() {
        let text = format!("sha256:{}", "a".repeat(64));
        let subject = Subject::parse(&text).unwrap();
        let naming = |digest: &str| {
            serde_json::json!({"critical": {"image": {"docker-manifest-digest": digest}}}).to_string()
        };
        assert!(subject.is_named_by(naming(&text).as_bytes()));
        assert!(!subject.is_named_by(naming("sha256:b").as_bytes()));
        assert!(!subject.is_named_by(b"{}") && !subject.is_named_by(b""));
    }
}
