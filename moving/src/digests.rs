//! Digests of what is moved: those that a source states, and those of the bytes that came.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

/// Digests in lower-case hex, as far as they are known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Digests {
    pub(crate) md5: Option<String>,
    pub(crate) sha1: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) sha512: Option<String>,
}

impl Digests {
    /// The SHA-256 alone, in hex or with `sha256:` before it.
    pub(crate) fn sha256(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.add("sha256", text.strip_prefix("sha256:").unwrap_or(text));
        digests
    }

    /// Takes a digest up by the name of its algorithm. What is no digest in hex of the right length is none.
    pub(crate) fn add(&mut self, algorithm: &str, hex: &str) {
        let hex = hex.trim().to_ascii_lowercase();
        let (place, length) = match algorithm {
            "md5" => (&mut self.md5, 32),
            "sha1" | "sha-1" => (&mut self.sha1, 40),
            "sha256" | "sha2" | "sha-256" => (&mut self.sha256, 64),
            "sha512" | "sha-512" => (&mut self.sha512, 128),
            _ => return,
        };
        if hex.len() == length && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            *place = Some(hex);
        }
    }

    /// Takes up the text of a checksum file: the digest, with a file's name before or behind it.
    pub(crate) fn add_text(&mut self, algorithm: &str, text: &str) {
        for word in text.split_whitespace() {
            self.add(algorithm, word);
        }
    }

    /// Those of a JSON object by the names of their algorithms.
    pub(crate) fn of_object(object: &Value) -> Digests {
        let mut digests = Digests::default();
        for (name, hex) in object.as_object().into_iter().flatten() {
            digests.add(name, hex.as_str().unwrap_or_default());
        }
        digests
    }

    /// Takes up subresource integrity, as `sha512-…` in base64.
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

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Digests::default()
    }

    /// Whether both know one by the same algorithm, and it is the same in each that both know; none where they share no algorithm.
    pub(crate) fn agree(&self, other: &Digests) -> Option<bool> {
        let shared = self.pairs(other).into_iter().filter_map(|(_, one, two)| Some(one? == two?));
        shared.fold(None, |agreed: Option<bool>, same| Some(agreed.unwrap_or(true) && same))
    }

    /// The strongest by which both differ, as a sentence's end.
    pub(crate) fn difference(&self, other: &Digests) -> String {
        let differs = |(name, one, two): (&str, Option<&String>, Option<&String>)| match (one, two) {
            (Some(one), Some(two)) if one != two => Some(format!("{name} {one} was stated, but {two} came")),
            _ => None,
        };
        self.pairs(other).into_iter().find_map(differs).unwrap_or_default()
    }

    /// The strongest first.
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

/// Computes the SHA-256 of bytes that come in pieces, and of the rest what is needed.
pub(crate) struct Hasher {
    sha256: Sha256,
    md5: Option<md5::Md5>,
    sha1: Option<Sha1>,
    sha512: Option<Sha512>,
}

impl Hasher {
    /// For a comparison with these.
    pub(crate) fn for_comparison(with: &Digests) -> Hasher {
        Hasher {
            sha256: Sha256::new(),
            md5: with.md5.as_ref().map(|_| md5::Md5::default()),
            sha1: with.sha1.as_ref().map(|_| Sha1::default()),
            sha512: with.sha512.as_ref().map(|_| Sha512::default()),
        }
    }

    /// Takes a piece in.
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

    /// The digests of all that came.
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
    fn what_is_shared_is_compared() {
        let mut stated = Digests::default();
        assert_eq!(stated.agree(&Digests::sha256(&sha256(b"a"))), None);
        stated.add("sha1", "86F7E437FAA5A7FCE15D1DDCB9EAEAEA377667B8");
        let mut hasher = Hasher::for_comparison(&stated);
        hasher.update(b"a");
        let came = hasher.finish();
        assert_eq!(stated.agree(&came), Some(true));
        assert_eq!(came.sha256, Some(sha256(b"a")));
        stated.add("sha256", &sha256(b"b"));
        assert_eq!(stated.agree(&came), Some(false));
        assert!(stated.difference(&came).starts_with("sha256 "));
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
