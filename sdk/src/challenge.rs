//! `WWW-Authenticate` challenges of a 401.

use serde::{Serialize, Serializer};

/// Challenge of a 401 response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// `Basic realm="…"`; the realm is the host name.
    Basic,
    /// `Bearer realm="…",service="…",scope="…",error="…"`; the realm is the token service.
    Bearer,
    /// Challenge of any other scheme.
    Scheme(ChallengeScheme),
}

/// Challenge of any scheme, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChallengeScheme {
    scheme: String,
    parameters: Vec<Parameter>,
}

/// Parameter of a challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Parameter {
    name: String,
    value: String,
}

impl Challenge {
    /// Starts a challenge of this scheme, for example `Cargo`, without parameters.
    pub fn scheme(name: impl Into<String>) -> ChallengeScheme {
        ChallengeScheme { scheme: name.into(), parameters: Vec::new() }
    }
}

impl ChallengeScheme {
    /// Adds a parameter. Its value may contain placeholders: `{host}` (the host name), `{base_url}`
    /// (the address of this host), `{api_url}` (the address of the API and the portal),
    /// `{token_service}`, `{scope}` and `{error}`. The last three have the values of a bearer
    /// challenge. If the value is only one placeholder, and the host has no value for it, the host
    /// leaves out the parameter.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push(Parameter { name: name.into(), value: value.into() });
        self
    }
}

impl From<ChallengeScheme> for Challenge {
    fn from(scheme: ChallengeScheme) -> Self {
        Self::Scheme(scheme)
    }
}

impl Serialize for Challenge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Basic => serializer.serialize_str("basic"),
            Self::Bearer => serializer.serialize_str("bearer"),
            Self::Scheme(scheme) => scheme.serialize(serializer),
        }
    }
}
