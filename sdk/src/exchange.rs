//! Trusted publishing: the requests by which a format's clients exchange an ID token of their build service for a token. The host does
//! the exchange; the description says what requests and answers look like.

use serde::Serialize;
use serde_json::Value;

/// One request of the format's clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    request: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gives: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    answer: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Refusal {
    status: u16,
    body: Value,
}

impl Exchange {
    /// A request, as `POST /_/oidc/mint-token`, that gives a token for an ID token; a last `{package..}` of the path is the one package
    /// that it is for. `answer` is JSON with `{token}`, `{expires}` (seconds since 1970) and `{lifetime}` (seconds) in its texts.
    pub fn token(request: impl Into<String>, answer: Value) -> Self {
        let (gives, id_token, audience, status, refusal) = (None, None, None, None, None);
        Self { request: request.into(), gives, id_token, audience, status, answer, refusal }
    }

    /// A request that tells anybody for whom ID tokens are to be made. `answer` is JSON with `{audience}` in its texts.
    pub fn audience(request: impl Into<String>, answer: Value) -> Self {
        Self { gives: Some("audience"), ..Self::token(request, answer) }
    }

    /// A request by which a client gives a token back that it got for an ID token: from then on it counts no more. It is answered alike
    /// whether or not there was one, with this status, of 200 to 299; 204 has no body.
    pub fn revocation(request: impl Into<String>, status: u16, answer: Value) -> Self {
        Self { gives: Some("revocation"), status: Some(status), ..Self::token(request, answer) }
    }

    /// The member of a JSON body that holds the ID token, or the token that is given back. As a bearer if not said.
    pub fn id_token_in(mut self, member: impl Into<String>) -> Self {
        self.id_token = Some(member.into());
        self
    }

    /// For whom the client has ID tokens made by itself, besides the host's own audience: `{hostname}` is the host's name.
    pub fn for_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// How a refused ID token is answered: a status of 400 to 499, and JSON with `{code}` and `{message}` in its texts. 401 as the
    /// format's errors are if not said.
    pub fn refused(mut self, status: u16, body: Value) -> Self {
        self.refusal = Some(Refusal { status, body });
        self
    }
}
