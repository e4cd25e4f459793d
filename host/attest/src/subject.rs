//! What a statement is to be about: a digest.

use std::fmt;

use serde_json::Value;
use sigstore_verify::types::{ArtifactDigest, HashAlgorithm, Sha256Hash, Sha512Hash, Statement};

/// A digest by SHA-256 or SHA-512.
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
    /// `sha256:` or `sha512:` and lower-case hex.
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

    /// The sentence for a statement that is about something else.
    pub(crate) fn mismatch(&self) -> String {
        format!("It is about another digest than {self}.")
    }

    /// Whether an in-toto statement has it among its subjects.
    pub(crate) fn is_of(&self, statement: &Statement) -> bool {
        let bytes = self.digest.as_bytes();
        match self.digest.algorithm() {
            HashAlgorithm::Sha2256 => {
                Sha256Hash::try_from(bytes).is_ok_and(|hash| statement.matches_sha256(&hash))
            }
            _ => Sha512Hash::try_from(bytes).is_ok_and(|hash| statement.matches_sha512(&hash)),
        }
    }

    /// Whether a document of "simple signing" is about it: what cosign's older signatures sign.
    pub(crate) fn is_named_by(&self, message: &[u8]) -> bool {
        let document: Value = serde_json::from_slice(message).unwrap_or_default();
        let named = document.pointer("/critical/image/docker-manifest-digest").and_then(Value::as_str);
        named == Some(self.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: to fail is how it speaks")]

    use super::*;

    #[test]
    fn a_digest_is_of_a_known_algorithm_and_its_length() {
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
