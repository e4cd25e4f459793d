//! Checksum files: `lib-1.0.jar.sha1` holds the SHA-1 of `lib-1.0.jar` in hex.

/// A checksum that clients ask for beside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The host's word for it, and the extension of its files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Characters of its hex.
    fn length(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    /// What a checksum file's name is the checksum of.
    pub(crate) fn split(name: &str) -> Option<(&str, Self)> {
        let (of, extension) = name.rsplit_once('.')?;
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == extension).map(|algorithm| (of, algorithm))
    }

    /// The checksum that a file's text states, in lower case: bare, with a file's name after it (`sha1sum`), or behind an
    /// equals sign (`openssl`). None when there is no word of the right length in hex.
    pub(crate) fn read(self, text: &str) -> Option<String> {
        text.split(|c: char| c.is_whitespace() || c == '=')
            .find(|word| word.len() == self.length() && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .map(str::to_ascii_lowercase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

    #[test]
    fn every_writer_of_checksums_is_understood() {
        for text in [
            SHA1.to_owned(),
            format!("{SHA1}\n"),
            SHA1.to_uppercase(),
            format!("{SHA1}  lib-1.0.jar\r\n"),
            format!("{SHA1} *lib-1.0.jar"),
            format!("SHA1(lib-1.0.jar)= {SHA1}"),
        ] {
            assert_eq!(Algorithm::Sha1.read(&text).as_deref(), Some(SHA1), "{text}");
        }
        for text in ["", "abc", &SHA1[1..], &format!("{SHA1}0"), &SHA1.replace('d', "g")] {
            assert_eq!(Algorithm::Sha1.read(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_split() {
        assert_eq!(Algorithm::split("a.jar.sha512"), Some(("a.jar", Algorithm::Sha512)));
        assert_eq!(Algorithm::split("a.jar"), None);
        assert_eq!(Algorithm::split("sha1"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,200}") {
            for algorithm in Algorithm::ALL {
                if let Some(hex) = algorithm.read(&text) {
                    prop_assert_eq!(hex.len(), algorithm.length());
                }
            }
        }
    }
}
