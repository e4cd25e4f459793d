//! Sentences for credentials that came and are not taken. They tell only what the credential itself shows to its holder, and nothing of
//! repositories.

use super::{ResolvedCredential, Rules, State, goes_with};

const UNKNOWN: &str =
    "The credential that was sent is not accepted: the token or password is wrong, or it was deleted.";

/// Why a credential is not taken wherever it is shown; none for one that works, and where none came.
pub fn ended(presented: &ResolvedCredential, now: i64) -> Option<&'static str> {
    let (key, state) = match presented {
        ResolvedCredential::Nothing | ResolvedCredential::Member(_) => return None,
        ResolvedCredential::Unknown => return Some(UNKNOWN),
        ResolvedCredential::Key(key) => (true, State::at(now, key.revoked_at, key.expires_at, key.ends_at)),
        ResolvedCredential::Token(token, _) => {
            (false, State::at(now, token.revoked_at, token.expires_at, token.ends_at))
        }
    };
    match (state, key) {
        (State::Active | State::Rotating, _) => None,
        (State::Revoked, false) => Some("The token that was sent was revoked or replaced; use a new one."),
        (State::Revoked, true) => {
            Some("The access key that was sent was revoked or replaced; use a new one.")
        }
        (State::Expired, false) => Some("The token that was sent has expired; make a new one in the portal."),
        (State::Expired, true) => Some("The access key that was sent has expired; ask for a new one."),
    }
}

/// Why a credential that came is not taken under these rules; none for one that is.
pub(super) fn refused(rules: &Rules<'_>, presented: &ResolvedCredential, now: i64) -> Option<String> {
    if let Some(sentence) = ended(presented, now) {
        return Some(sentence.to_owned());
    }
    let ResolvedCredential::Token(token, username) = presented else { return None };
    let misnamed = rules.checks_username && !goes_with(rules, token, username.as_deref());
    misnamed.then(|| other_user_name(rules))
}

/// The holder of a token may know that it works: only the name beside it does not.
fn other_user_name(rules: &Rules<'_>) -> String {
    let any = rules.token_usernames.first().map(|name| format!(" or `{name}`")).unwrap_or_default();
    format!("The token is valid, but not with this user name; use its owner's e-mail address{any}.")
}
