//! Digests of moved files: those that a source states, and those of the received bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

/// The known digests of a file, in lower-case hex.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Digests {
    pub(crate) md5: Option<String>,
    pub(crate) sha1: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) sha512: Option<String>,
}

impl Digests {
    /// Digests with only a SHA-256, in hex with or without the prefix `sha256:`.
    pub(crate) fn sha256(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.add("sha256", text.strip_prefix("sha256:").unwrap_or(text));
        digests
    }

    /// Adds a digest by the name of its algorithm. Text that is not hex of the right length is
    /// ignored.
    pub(crate) fn add(&mut self, algorithm: &str, hex: &str) {
        let hex = hex.trim().to_ascii_lowercase();
        let (digest, length) = match algorithm {
            "md5" => (&mut self.md5, 32),
            "sha1" | "sha-1" => (&mut self.sha1, 40),
            "sha256" | "sha2" | "sha-256" => (&mut self.sha256, 64),
            "sha512" | "sha-512" => (&mut self.sha512, 128),
            _ => return,
        };
        if hex.len() == length && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            *digest = Some(hex);
        }
    }

    /// Adds the digest in a checksum file. The file may contain a file name before or after the
    /// digest.
    pub(crate) fn add_text(&mut self, algorithm: &str, text: &str) {
        for word in text.split_whitespace() {
            self.add(algorithm, word);
        }
    }

    /// Reads digests from a JSON object that is keyed by algorithm.
    pub(crate) fn of_object(object: &Value) -> Digests {
        let mut digests = Digests::default();
        for (name, hex) in object.as_object().into_iter().flatten() {
            digests.add(name, hex.as_str().unwrap_or_default());
        }
        digests
    }

    /// Adds digests in the form of subresource integrity, such as `sha512-…` in base64.
    pub(crate) fn add_integrity(&mut self, text: &str) {
        for word in text.split_whitespace() {
            let word = word.split('?').next().unwrap_or_default();
            if let Some((algorithm, encoded)) = word.split_once('-')
                && let Ok(bytes) = STANDARD.decode(encoded)
            {
                self.add(algorithm, &hex::encode(bytes));
            }
        }
    }

    /// Reports whether no digest is known.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Digests::default()
    }

    /// Compares the digests of all algorithms that both sides have. `None` if they share no
    /// algorithm.
    pub(crate) fn agree(&self, other: &Digests) -> Option<bool> {
        let shared = self.pairs(other).into_iter().filter_map(|(_, one, two)| Some(one? == two?));
        shared.fold(None, |agreed: Option<bool>, same| Some(agreed.unwrap_or(true) && same))
    }

    /// Describes the difference of the strongest digest that differs, for the end of a sentence.
    pub(crate) fn difference(&self, other: &Digests) -> String {
        let differs = |(name, one, two): (&str, Option<&String>, Option<&String>)| match (one, two) {
            (Some(one), Some(two)) if one != two => {
                Some(format!("the source states {name} {one}, but the received bytes have {two}"))
            }
            _ => None,
        };
        self.pairs(other).into_iter().find_map(differs).unwrap_or_default()
    }

    /// Pairs the digests of both sides by algorithm, the strongest first.
    fn pairs<'a>(
        &'a self,
        other: &'a Digests,
    ) -> [(&'static str, Option<&'a String>, Option<&'a String>); 4] {
        [
            ("sha512", self.sha512.as_ref(), other.sha512.as_ref()),
            ("sha256", self.sha256.as_ref(), other.sha256.as_ref()),
            ("sha1", self.sha1.as_ref(), other.sha1.as_ref()),
            ("md5", self.md5.as_ref(), other.md5.as_ref()),
        ]
    }
}

/// Computes the SHA-256 of a stream, and other digests if they are needed for a comparison.
pub(crate) struct Hasher {
    sha256: Sha256,
    md5: Option<md5::Md5>,
    sha1: Option<Sha1>,
    sha512: Option<Sha512>,
}

impl Hasher {
    /// Creates a hasher for a comparison with these digests.
    pub(crate) fn for_comparison(with: &Digests) -> Hasher {
        Hasher {
            sha256: Sha256::new(),
            md5: with.md5.as_ref().map(|_| md5::Md5::default()),
            sha1: with.sha1.as_ref().map(|_| Sha1::default()),
            sha512: with.sha512.as_ref().map(|_| Sha512::default()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5::Digest::update(md5, bytes);
        }
        if let Some(sha1) = &mut self.sha1 {
            sha1::Digest::update(sha1, bytes);
        }
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
    }

    /// The digests of all bytes.
    pub(crate) fn finish(self) -> Digests {
        Digests {
            md5: self.md5.map(|md5| hex::encode(md5::Digest::finalize(md5))),
            sha1: self.sha1.map(|sha1| hex::encode(sha1::Digest::finalize(sha1))),
            sha256: Some(hex::encode(self.sha256.finalize())),
            sha512: self.sha512.map(|sha512| hex::encode(sha512.finalize())),
        }
    }
}

/// The SHA-256 of these bytes, in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_algorithms_are_compared() {
        let mut stated = Digests::default();
        assert_eq!(stated.agree(&Digests::sha256(&sha256(b"a"))), None);
        stated.add("sha1", "86F7E437FAA5A7FCE15D1DDCB9EAEAEA377667B8");
        let mut hasher = Hasher::for_comparison(&stated);
        hasher.update(b"a");
        let measured = hasher.finish();
        assert_eq!(stated.agree(&measured), Some(true));
        assert_eq!(measured.sha256, Some(sha256(b"a")));
        stated.add("sha256", &sha256(b"b"));
        assert_eq!(stated.agree(&measured), Some(false));
        assert!(stated.difference(&measured).starts_with("the source states sha256 "));
    }

    #[test]
    fn integrity_is_a_digest_in_base64() {
        let mut stated = Digests::default();
        stated.add_integrity("sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=?x md9-a");
        assert_eq!(stated, Digests::sha256(&sha256(b"a")));
        stated.add("sha1", "short");
        assert_eq!(stated.sha1, None);
    }
}
