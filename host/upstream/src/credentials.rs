//! Credentials of upstreams, for formats whose description allows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use packhouse_identity::Secret;
use serde_json::json;

/// How a request may authenticate at its upstream.
#[derive(Clone, Default)]
pub enum UpstreamAuth {
    /// Never: the format presents no credentials.
    #[default]
    None,
    /// When the upstream sends a challenge, with these credentials where there are some.
    OnChallenge(Option<Credentials>),
}

/// Credentials of one upstream.
#[derive(Clone, Eq, PartialEq)]
pub struct Credentials {
    /// The account.
    pub username: String,
    /// Its password or token.
    pub password: Secret,
    /// The address of a token service on another host that may receive them.
    pub token_realm: Option<String>,
}

impl Credentials {
    /// One text, to be sealed.
    pub fn to_secret(&self) -> Secret {
        Secret::new(json!([self.username, self.password.reveal(), self.token_realm]).to_string())
    }

    /// Reads what [`Credentials::to_secret`] made. None for any other text.
    pub fn of_secret(text: &Secret) -> Option<Credentials> {
        let (username, password, token_realm) = serde_json::from_str::<(_, String, _)>(text.reveal()).ok()?;
        Some(Credentials { username, password: Secret::new(password), token_realm })
    }

    /// The value of an `Authorization` header of the scheme Basic. None when the username cannot stand in a header.
    pub(crate) fn basic(&self) -> Option<HeaderValue> {
        let pair = Secret::new(format!("{}:{}", self.username, self.password.reveal()));
        HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.reveal()))).ok()
    }
}
