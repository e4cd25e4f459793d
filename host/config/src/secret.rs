//! Secrets among the settings, and the rules for passwords.

use std::fmt;

/// Prefix of every token of this server, except API tokens.
pub const TOKEN_PREFIX: &str = "pkh_";
/// Prefix of API tokens. It has the length of [`TOKEN_PREFIX`].
pub const API_TOKEN_PREFIX: &str = "pka_";
/// Minimum length of a new password, in characters.
const SHORTEST: usize = 8;
/// Maximum length of a new password, in bytes.
const LONGEST: usize = 1024;

/// A text that `Debug` does not show.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the secret text. Callers should use it only where they need the text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns whether a text begins like a token of this server, so that its owner did not mean it as
/// a password.
pub fn says_token(presented: &str) -> bool {
    presented.starts_with(TOKEN_PREFIX) || says_api_token(presented)
}

/// Returns whether a text begins like an API token of this server.
pub fn says_api_token(presented: &str) -> bool {
    presented.starts_with(API_TOKEN_PREFIX)
}

/// Checks a new password, wherever it comes from. The error continues a sentence that begins with
/// the name of the value. It does not contain the password.
pub fn new_password(text: &str) -> Result<Secret, String> {
    if text.trim().is_empty() {
        return Err("must not be blank".to_owned());
    }
    if text.chars().count() < SHORTEST || text.len() > LONGEST {
        return Err(format!("must have at least {SHORTEST} characters and at most {LONGEST} bytes"));
    }
    if says_token(text) {
        return Err("must not begin like a token".to_owned());
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_blank_or_token_like_password_is_refused() {
        let token_like = ["pkh_0123456789abcdef", "pka_0123456789abcdef"];
        for text in ["", "a", "seven c", "        ", &"x".repeat(LONGEST + 1)].into_iter().chain(token_like) {
            assert!(new_password(text).is_err(), "{text:?}");
        }
        assert!(new_password("eight ch").is_ok());
    }
}
