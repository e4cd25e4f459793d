//! Trusted publishing: requests by which clients exchange an ID token of their build service for a
//! token. The host handles the exchange; the description defines the form of requests and
//! responses.

use serde::Serialize;
use serde_json::Value;

/// Request of an exchange.
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
    refusal: Option<ExchangeRefusal>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ExchangeRefusal {
    status: u16,
    body: Value,
}

impl Exchange {
    /// A request, for example `POST /_/oidc/mint-token`, that exchanges an ID token for a token. If
    /// the path ends with `{package..}`, the token is valid for that package only. `answer` is JSON
    /// whose texts may contain `{token}`, `{expires}` (Unix time in seconds) and `{lifetime}`
    /// (seconds).
    pub fn token(request: impl Into<String>, answer: Value) -> Self {
        let (gives, id_token, audience, status, refusal) = (None, None, None, None, None);
        Self { request: request.into(), gives, id_token, audience, status, answer, refusal }
    }

    /// A request that returns the audience for which ID tokens must be issued. The request needs no
    /// credential. `answer` is JSON whose texts may contain `{audience}`.
    pub fn audience(request: impl Into<String>, answer: Value) -> Self {
        Self { gives: Some("audience"), ..Self::token(request, answer) }
    }

    /// A request that revokes a token from an earlier exchange. The response is the same whether or
    /// not the token existed. `status` is 200 to 299; 204 has no body.
    pub fn revocation(request: impl Into<String>, status: u16, answer: Value) -> Self {
        Self { gives: Some("revocation"), status: Some(status), ..Self::token(request, answer) }
    }

    /// Sets the member of a JSON body that holds the ID token, or the token to revoke. By default
    /// clients send it as a bearer token.
    pub fn id_token_in(mut self, member: impl Into<String>) -> Self {
        self.id_token = Some(member.into());
        self
    }

    /// Accepts another audience besides the host's own, for clients that choose the audience
    /// themselves; `{hostname}` is the host name.
    pub fn for_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets the response to a refused ID token: a status of 400 to 499, and JSON whose texts may
    /// contain `{code}` and `{message}`. The default is 401 in the form of the format's errors.
    pub fn refused(mut self, status: u16, body: Value) -> Self {
        self.refusal = Some(ExchangeRefusal { status, body });
        self
    }
}
