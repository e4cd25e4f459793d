//! Credentials. They come from a file or the environment, never from the command line, and are
//! never printed.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail, ensure};

/// Maximum size of a file with a credential, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// A text that is never printed.
#[derive(Clone, Default)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A credential for a server.
#[derive(Clone, Debug)]
pub struct Credential(pub(crate) CredentialKind);

#[derive(Clone, Debug)]
pub(crate) enum CredentialKind {
    /// A name and a password.
    Login { name: String, password: Secret },
    /// A bearer token.
    Token(Secret),
}

impl Credential {
    /// Parses a login in the form `NAME:PASSWORD`.
    ///
    /// # Errors
    /// Fails if there is no colon, or nothing before it.
    pub fn login(text: &str) -> anyhow::Result<Credential> {
        match text.trim_end_matches(['\r', '\n']).split_once(':') {
            Some((name, password)) if !name.is_empty() => Ok(Credential(CredentialKind::Login {
                name: name.to_owned(),
                password: Secret::new(password),
            })),
            _ => bail!("a login must be written as NAME:PASSWORD in one line"),
        }
    }

    /// Parses a token.
    ///
    /// # Errors
    /// Fails if it is empty or has characters that are not allowed in a header.
    pub fn token(text: &str) -> anyhow::Result<Credential> {
        let text = text.trim();
        ensure!(
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()),
            "a token must be a single word of printable ASCII characters"
        );
        Ok(Credential(CredentialKind::Token(Secret::new(text))))
    }

    /// Reads the first line of a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is too large.
    pub fn first_line(file: &Path) -> anyhow::Result<String> {
        let failed = || format!("failed to read {}", file.display());
        ensure!(
            std::fs::metadata(file).with_context(failed)?.len() <= MAX_FILE_BYTES,
            "{} is too large",
            file.display()
        );
        let text = std::fs::read_to_string(file).with_context(failed)?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_a_name_and_a_password() {
        let CredentialKind::Login { name, password } = Credential::login("me:a:b\n").unwrap().0 else {
            panic!()
        };
        assert_eq!((name.as_str(), password.reveal()), ("me", "a:b"));
        for wrong in ["", "me", ":secret"] {
            assert!(Credential::login(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let printed = format!(
            "{:?} {:?}",
            Credential::login("me:hidden").unwrap(),
            Credential::token("hidden").unwrap()
        );
        assert!(!printed.contains("hidden"), "{printed}");
    }
}
