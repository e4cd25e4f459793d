//! Credentials: from a file or the environment, never from the command line, never printed.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail, ensure};

/// Bytes of a file with a credential.
const MOST: u64 = 64 << 10;

/// A text that no message holds.
#[derive(Clone, Default)]
pub(crate) struct Secret(String);

impl Secret {
    /// A secret of this text.
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

/// What is shown to a server.
#[derive(Clone, Debug)]
pub struct Credential(pub(crate) Shown);

#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// A name with its password.
    Login { name: String, password: Secret },
    /// A token, shown as a bearer.
    Token(Secret),
}

impl Credential {
    /// `NAME:PASSWORD`.
    ///
    /// # Errors
    /// Where there is no colon, or nothing before it.
    pub fn login(text: &str) -> anyhow::Result<Credential> {
        match text.trim_end_matches(['\r', '\n']).split_once(':') {
            Some((name, password)) if !name.is_empty() => {
                Ok(Credential(Shown::Login { name: name.to_owned(), password: Secret::new(password) }))
            }
            _ => bail!("a login is written NAME:PASSWORD in one line"),
        }
    }

    /// A token alone.
    ///
    /// # Errors
    /// Where it is empty or holds what no header may.
    pub fn token(text: &str) -> anyhow::Result<Credential> {
        let text = text.trim();
        ensure!(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()), "a token is one word");
        Ok(Credential(Shown::Token(Secret::new(text))))
    }

    /// The first line of a file.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn first_line(file: &Path) -> anyhow::Result<String> {
        let said = || format!("failed to read {}", file.display());
        ensure!(std::fs::metadata(file).with_context(said)?.len() <= MOST, "{} is too large", file.display());
        let text = std::fs::read_to_string(file).with_context(said)?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_a_name_and_a_password() {
        let Shown::Login { name, password } = Credential::login("me:a:b\n").unwrap().0 else { panic!() };
        assert_eq!((name.as_str(), password.reveal()), ("me", "a:b"));
        for wrong in ["", "me", ":secret"] {
            assert!(Credential::login(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let shown = format!(
            "{:?} {:?}",
            Credential::login("me:hidden").unwrap(),
            Credential::token("hidden").unwrap()
        );
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
