//! Secrets of webhooks and their signatures, by Standard Webhooks 1.0. A secret is `whsec_` and
//! base64. The signed text is the message's id, the time in seconds and the body, joined by dots.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use packhouse_config::Secret;

/// Prefix of every webhook secret.
const PREFIX: &str = "whsec_";
/// Number of random bytes in a secret.
const BYTES: usize = 32;

/// Creates a secret from 256 random bits.
pub fn mint_webhook_secret() -> Secret {
    let bytes: [u8; BYTES] = rand::random();
    Secret::new(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// Signs a message that is sent at `at`, in seconds since 1970. `None` if the secret is malformed.
pub fn sign_webhook(secret: &Secret, id: &str, at: i64, body: &[u8]) -> Option<String> {
    let key = STANDARD.decode(secret.reveal().strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(body);
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_matches_the_example_of_the_specification() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signed =
            sign_webhook(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn a_malformed_secret_signs_nothing() {
        for text in ["", "whsec", "whsec_!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(sign_webhook(&Secret::new(text.to_owned()), "a", 1, b""), None, "{text}");
        }
        let (one, other) = (mint_webhook_secret(), mint_webhook_secret());
        assert_ne!(one.reveal(), other.reveal());
        assert!(sign_webhook(&one, "a", 1, b"").is_some());
        assert_ne!(sign_webhook(&one, "a", 1, b""), sign_webhook(&other, "a", 1, b""));
    }
}
