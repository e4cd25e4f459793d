//! Secrets and who presents them: how tokens look and are kept, how passwords are checked. Rules of access are not here.

mod bearer;
mod password;
mod seal;
mod secret;
mod throttle;

pub(crate) use bearer::{Bearer, Bearers, Grant, Holder, LIFETIME_S, says_bearer};
pub(crate) use password::Passwords;
pub(crate) use seal::{SHORTEST as SHORTEST_KEY, SealError, Sealer};
pub(crate) use secret::{
    Minted, Secret, TOKEN_PREFIX, fingerprint, holds_secret, holds_token, mint, mint_poll, random_password,
    says_token,
};
pub(crate) use throttle::Throttle;

/// An e-mail address as it is kept, in lower case; none when it is none. Only the shape is judged: one `@` with something
/// on both sides, no space or control character, at most 254 bytes.
pub(crate) fn email(text: &str) -> Option<String> {
    let text = text.trim();
    let (local, domain) = text.split_once('@')?;
    let shaped = !local.is_empty() && !domain.is_empty() && !domain.contains('@') && text.len() <= 254;
    let plain = !text.chars().any(|letter| letter.is_whitespace() || letter.is_control() || letter == ':');
    (shaped && plain).then(|| text.to_lowercase())
}
