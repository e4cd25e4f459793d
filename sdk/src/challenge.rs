//! What a 401 asks for.

use serde::{Serialize, Serializer};

/// What a 401 asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// `Basic realm="…"`, with the host's name.
    Basic,
    /// `Bearer realm="…",service="…",scope="…",error="…"`, naming the token service.
    Bearer,
    /// Any scheme.
    Scheme(ChallengeScheme),
}

/// A challenge of any scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChallengeScheme {
    scheme: String,
    parameters: Vec<Parameter>,
}

/// One parameter of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Parameter {
    name: String,
    value: String,
}

impl Challenge {
    /// A scheme by its name, as `Cargo`, without parameters.
    pub fn scheme(name: impl Into<String>) -> ChallengeScheme {
        ChallengeScheme { scheme: name.into(), parameters: Vec::new() }
    }
}

impl ChallengeScheme {
    /// One more parameter. Its value may have placeholders: `{host}` (the host's name), `{base_url}` (the address of this host),
    /// `{api_url}` (that of the API and of the portal), `{token_service}`, `{scope}` and `{error}`, as a bearer's challenge has them.
    /// A value that is one placeholder which stands for nothing is left out with its parameter.
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
