//! Tokens: `pkh_` or `pka_`, 43 base64url letters for 256 random bits, and 8 hexadecimal digits of
//! a CRC-32 over the text before them. People and scanners recognize a token by its form, and a
//! damaged token costs no look-up. Only the SHA-256 of a token is stored. The prefix `pka_` marks
//! API tokens, which only the API host knows.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_config::{API_TOKEN_PREFIX, Secret, TOKEN_PREFIX, says_token};
use sha2::{Digest, Sha256};

/// A new token and its stored form.
#[derive(Debug)]
pub struct Minted {
    /// The token, which is shown only once.
    pub secret: Secret,
    /// SHA-256 of the whole token, which is stored.
    pub sha256: [u8; 32],
}

/// Prefix of poll secrets. While a person signs in with the browser, the client polls for the token
/// with such a secret.
const POLL_PREFIX: &str = "pkl_";
/// Prefixes of all secrets that this server issues: tokens, API tokens, bearers and poll secrets.
pub const SECRET_PREFIXES: [&str; 4] = [TOKEN_PREFIX, API_TOKEN_PREFIX, crate::bearer::PREFIX, POLL_PREFIX];
/// Length of a token in bytes, whichever prefix it has.
const LENGTH: usize = TOKEN_PREFIX.len() + 43 + 8;

/// Creates a token from the operating system's random numbers.
pub fn mint() -> Minted {
    mint_with(TOKEN_PREFIX)
}

/// Creates an API token from the operating system's random numbers.
pub fn mint_api_token() -> Minted {
    mint_with(API_TOKEN_PREFIX)
}

fn mint_with(prefix: &str) -> Minted {
    let bytes: [u8; 32] = rand::random();
    let body = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes));
    let token = format!("{body}{:08x}", crc32fast::hash(body.as_bytes()));
    let sha256 = sha256(&token);
    Minted { secret: Secret::new(token), sha256 }
}

/// Generates a password: 24 random bytes in base64url. The password never has the form of a token,
/// because a sign-in does not accept a text in this form as a password.
pub fn random_password() -> Secret {
    let bytes: [u8; 24] = rand::random();
    Secret::new(URL_SAFE_NO_PAD.encode(bytes))
}

/// Creates a poll secret. The secret is part of a URL. Logs recognize and hide it by its prefix.
pub fn mint_poll() -> String {
    format!("{POLL_PREFIX}{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// Look-up key of a presented token: its SHA-256. `None` if the text has this server's prefix and a
/// wrong checksum, so that a mistyped token costs no look-up. A text of another form may be an
/// imported token.
pub fn fingerprint(presented: &str) -> Option<[u8; 32]> {
    let damaged = says_token(presented) && !whole(presented);
    let possible = !presented.is_empty() && presented.len() <= 1024;
    (possible && !damaged).then(|| sha256(presented))
}

/// Reports whether a text may contain a token.
pub fn holds_token(text: &str) -> bool {
    [TOKEN_PREFIX, API_TOKEN_PREFIX].iter().any(|prefix| text.contains(prefix))
}

/// Reports whether a text may contain any secret that this server issues.
pub fn holds_secret(text: &str) -> bool {
    SECRET_PREFIXES.iter().any(|prefix| text.contains(prefix))
}

fn whole(token: &str) -> bool {
    let Some((body, checksum)) = token.split_at_checked(LENGTH - 8) else { return false };
    token.len() == LENGTH && checksum == format!("{:08x}", crc32fast::hash(body.as_bytes()))
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_token_has_its_prefix_its_length_and_its_checksum() {
        for (minted, prefix) in [(mint(), "pkh_"), (mint_api_token(), "pka_")] {
            let token = minted.secret.reveal();
            assert!(token.starts_with(prefix), "{token}");
            assert!(says_token(token) && holds_token(token) && holds_secret(token), "{token}");
            assert_eq!(token.len(), LENGTH);
            assert_eq!(fingerprint(token), Some(minted.sha256));
            assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
        }
    }

    #[test]
    fn a_token_with_one_letter_changed_is_not_looked_up() {
        for minted in [mint(), mint_api_token()] {
            let token = minted.secret.reveal().to_owned();
            for at in TOKEN_PREFIX.len()..token.len() {
                let mut bytes = token.clone().into_bytes();
                bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
                assert_eq!(fingerprint(std::str::from_utf8(&bytes).unwrap()), None, "changed at {at}");
            }
            assert_eq!(fingerprint(&token[..token.len() - 1]), None);
        }
        assert_eq!(fingerprint(""), None);
    }

    #[test]
    fn a_text_of_another_shape_may_be_an_imported_token() {
        assert!(fingerprint("old-token").is_some());
    }

    #[test]
    fn ten_thousand_tokens_differ() {
        let tokens: BTreeSet<[u8; 32]> = (0..10_000).map(|_| mint().sha256).collect();
        assert_eq!(tokens.len(), 10_000);
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let minted = mint();
        assert!(!format!("{minted:?}").contains(minted.secret.reveal()));
    }
}
