//! Messages for refused credentials. They say only what the holder of the credential may know, and
//! nothing about repositories.

use super::{CredentialState, FormatRules, ResolvedCredential, goes_with};

const UNKNOWN: &str =
    "The credential that was sent is not accepted: the token or password is wrong, or it was deleted.";
/// The reason for refusing the password or a token of a suspended member.
pub const SUSPENDED: &str = "The account of this credential is suspended.";
/// The reason for refusing the password of an account with a second factor.
pub const NEEDS_TOKEN: &str =
    "The account of this password has a second factor, so make a token in the portal and send that instead.";
/// The reason for refusing the password of an account without the second factor that its
/// organization requires.
pub const NEEDS_FACTOR: &str =
    "Your organization requires a second factor, so make a token in the portal and send that instead.";

/// The reason why a credential is refused everywhere. `None` if it is valid, and for a request
/// without a credential.
pub fn ended(presented: &ResolvedCredential, now: i64) -> Option<&'static str> {
    let (key, state) = match presented {
        ResolvedCredential::Nothing | ResolvedCredential::Member(_) => return None,
        ResolvedCredential::Unknown => return Some(UNKNOWN),
        ResolvedCredential::Refused(sentence) => return Some(*sentence),
        ResolvedCredential::Key(key) => {
            (true, CredentialState::at(now, key.revoked_at, key.expires_at, key.ends_at))
        }
        ResolvedCredential::Token(token, _) => {
            (false, CredentialState::at(now, token.revoked_at, token.expires_at, token.ends_at))
        }
    };
    match (state, key) {
        (CredentialState::Active | CredentialState::Rotating, _) => None,
        (CredentialState::Revoked, false) => {
            Some("The token that was sent was revoked or replaced; use a new one.")
        }
        (CredentialState::Revoked, true) => {
            Some("The access key that was sent was revoked or replaced; use a new one.")
        }
        (CredentialState::Expired, false) => {
            Some("The token that was sent has expired; make a new one in the portal.")
        }
        (CredentialState::Expired, true) => {
            Some("The access key that was sent has expired; ask for a new one.")
        }
    }
}

/// The reason why a credential is refused under these rules. `None` if it is accepted.
pub(super) fn refused(rules: &FormatRules<'_>, presented: &ResolvedCredential, now: i64) -> Option<String> {
    if let Some(sentence) = ended(presented, now) {
        return Some(sentence.to_owned());
    }
    let ResolvedCredential::Token(token, username) = presented else { return None };
    let misnamed = rules.checks_username && !goes_with(rules, token, username.as_deref());
    misnamed.then(|| other_user_name(rules))
}

/// Message for a valid token with a wrong user name. The holder of the token may know that it is
/// valid.
fn other_user_name(rules: &FormatRules<'_>) -> String {
    let any = rules.token_usernames.first().map(|name| format!(" or `{name}`")).unwrap_or_default();
    format!("The token is valid, but not with this user name; use its owner's e-mail address{any}.")
}
