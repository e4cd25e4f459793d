//! Checksum files: `lib-1.0.jar.sha1` holds the SHA-1 of `lib-1.0.jar` in hex.

/// A checksum algorithm that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// All algorithms.
    pub(crate) const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// The name that the host uses, which is also the extension of checksum files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Number of hex digits of a checksum.
    fn length(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }

    /// Splits the name of a checksum file into the name of the file and the algorithm.
    pub(crate) fn split(name: &str) -> Option<(&str, Self)> {
        let (file, extension) = name.rsplit_once('.')?;
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == extension)
            .map(|algorithm| (file, algorithm))
    }

    /// Returns the checksum in the text of a checksum file, in lower case. The checksum may be
    /// bare, before a file name (`sha1sum`) or after an equals sign (`openssl`). `None` if the text
    /// has no hex word of the right length.
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
    fn checksum_files_of_every_tool_are_read() {
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
    fn the_name_of_a_checksum_file_is_split() {
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
