//! Credentials for upstreams, for formats whose description allows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use packhouse_identity::Secret;
use serde_json::json;

/// How a request authenticates at its upstream.
#[derive(Clone, Default)]
pub enum UpstreamAuth {
    /// The format does not use credentials.
    #[default]
    None,
    /// Answers a challenge of the upstream, with credentials if there are any.
    OnChallenge(Option<Credentials>),
}

/// Account and password for one upstream.
#[derive(Clone, Eq, PartialEq)]
pub struct Credentials {
    pub username: String,
    /// Password or token of the account.
    pub password: Secret,
    /// Address of a token service on another host that may receive the credentials.
    pub token_realm: Option<String>,
}

impl Credentials {
    /// Encodes the credentials as one text, to be sealed.
    pub fn to_secret(&self) -> Secret {
        Secret::new(json!([self.username, self.password.reveal(), self.token_realm]).to_string())
    }

    /// Parses the text of [`Credentials::to_secret`]. None for any other text.
    pub fn of_secret(text: &Secret) -> Option<Credentials> {
        let (username, password, token_realm) = serde_json::from_str::<(_, String, _)>(text.reveal()).ok()?;
        Some(Credentials { username, password: Secret::new(password), token_realm })
    }

    /// Returns an `Authorization` header value with the Basic scheme. None if the username cannot
    /// be part of a header.
    pub(crate) fn basic(&self) -> Option<HeaderValue> {
        let pair = Secret::new(format!("{}:{}", self.username, self.password.reveal()));
        HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.reveal()))).ok()
    }
}
