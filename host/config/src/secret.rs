//! Secrets among the settings: a text that never shows itself, and what a password must be.

use std::fmt;

/// What every token of this server begins with.
pub const TOKEN_PREFIX: &str = "pkh_";
/// The shortest password that is taken, in characters.
const SHORTEST: usize = 8;
/// The longest, in bytes.
const LONGEST: usize = 1024;

/// A text that never shows itself.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Whether a text says that it is a token, whole or not: then nobody meant it as a password.
pub fn says_token(presented: &str) -> bool {
    presented.starts_with(TOKEN_PREFIX)
}

/// A new password, of whomever and however it came; else what is wrong with it, to be read after its name, without its text.
pub fn new_password(text: &str) -> Result<Secret, String> {
    if text.trim().is_empty() {
        return Err("must not be blank".to_owned());
    }
    if text.chars().count() < SHORTEST || text.len() > LONGEST {
        return Err(format!("has at least {SHORTEST} characters and at most {LONGEST} bytes"));
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
    fn what_is_short_blank_or_like_a_token_is_no_password() {
        for text in ["", "a", "seven c", "        ", "pkh_0123456789abcdef", &"x".repeat(LONGEST + 1)] {
            assert!(new_password(text).is_err(), "{text:?}");
        }
        assert!(new_password("eight ch").is_ok());
    }
}
