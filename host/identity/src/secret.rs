//! Tokens: `pkh_`, 43 letters of base64url for 256 random bits, and 8 hexadecimal digits of CRC-32 over what stands
//! before them, so that people and scanners can tell one, and a damaged one costs no look-up. Only the SHA-256 of a
//! token is kept.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_config::{Secret, TOKEN_PREFIX, says_token};
use sha2::{Digest, Sha256};

/// A new token and what is kept of it.
#[derive(Debug)]
pub struct Minted {
    /// Shown once.
    pub secret: Secret,
    /// Kept: SHA-256 of the whole token.
    pub sha256: [u8; 32],
}

/// What every secret begins with that a client asks for its sign-in's token with.
const POLL_PREFIX: &str = "pkl_";
/// What every secret that this server makes begins with: tokens, what token services give out, and what a client asks for its sign-in's
/// token with.
pub const SECRET_PREFIXES: [&str; 3] = [TOKEN_PREFIX, crate::bearer::PREFIX, POLL_PREFIX];
/// The length of a whole token.
const LENGTH: usize = TOKEN_PREFIX.len() + 43 + 8;

/// Makes a token from the operating system's randomness.
pub fn mint() -> Minted {
    let bytes: [u8; 32] = rand::random();
    let body = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let token = format!("{body}{:08x}", crc32fast::hash(body.as_bytes()));
    let sha256 = sha256(&token);
    Minted { secret: Secret::new(token), sha256 }
}

/// A password that nobody chose: 24 random bytes in base64url. It never looks like a token, which is never taken for a
/// password.
pub fn random_password() -> Secret {
    let bytes: [u8; 24] = rand::random();
    Secret::new(URL_SAFE_NO_PAD.encode(bytes))
}

/// Makes what a client asks for its sign-in's token with. It stands in an address, and so looks like what no log may hold.
pub fn mint_poll() -> String {
    format!("{POLL_PREFIX}{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// What a presented token is looked up by: its SHA-256. None when it says that it is a token of this server and its
/// checksum is wrong, so that a mistyped one costs nothing; a text of another shape may be one that was imported.
pub fn fingerprint(presented: &str) -> Option<[u8; 32]> {
    let damaged = says_token(presented) && !whole(presented);
    let possible = !presented.is_empty() && presented.len() <= 1024;
    (possible && !damaged).then(|| sha256(presented))
}

/// Whether a token may stand anywhere in a text.
pub fn holds_token(text: &str) -> bool {
    text.contains(TOKEN_PREFIX)
}

/// Whether a text may hold a secret that this server made, of any kind.
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
        let minted = mint();
        let token = minted.secret.reveal();
        assert!(token.starts_with("pkh_"), "{token}");
        assert_eq!(token.len(), LENGTH);
        assert_eq!(fingerprint(token), Some(minted.sha256));
        assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
    }

    #[test]
    fn a_token_with_one_letter_changed_is_not_looked_up() {
        let token = mint().secret.reveal().to_owned();
        for at in TOKEN_PREFIX.len()..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            assert_eq!(fingerprint(std::str::from_utf8(&bytes).unwrap()), None, "changed at {at}");
        }
        assert_eq!(fingerprint(&token[..token.len() - 1]), None);
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
    fn no_debug_shows_a_secret() {
        let minted = mint();
        assert!(!format!("{minted:?}").contains(minted.secret.reveal()));
    }
}
