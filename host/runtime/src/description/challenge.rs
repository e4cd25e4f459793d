//! The challenge of a 401 response: a scheme and its parameters, as data.

use serde::{Deserialize, Serialize};

use super::template::check_text;

/// Placeholders that a parameter may contain.
const OF_PARAMETER: &[&str] = &["host", "base_url", "api_url", "token_service", "scope", "error"];

/// The challenge of a 401 response: one of two named challenges, or a custom scheme.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Challenge {
    Named(NamedChallenge),
    Scheme(ChallengeScheme),
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedChallenge {
    #[default]
    Basic,
    /// Bearer challenge, or Basic if there is no token service:
    /// `Bearer realm="{token_service}",service="{host}",scope="{scope}",error="{error}"`.
    Bearer,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChallengeScheme {
    pub scheme: String,
    /// Parameters in the order in which they are sent.
    #[serde(default)]
    pub parameters: Vec<ChallengeParameter>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChallengeParameter {
    pub name: String,
    /// The value without quotes; it may contain placeholders. The host leaves the parameter out if
    /// the whole value is one placeholder that has no value.
    pub value: String,
}

impl Default for Challenge {
    fn default() -> Self {
        Self::Named(NamedChallenge::Basic)
    }
}

impl Challenge {
    /// Returns scheme and parameters. A bearer challenge becomes Basic if there is no token service
    /// to name.
    pub(super) fn scheme(&self, has_token_service: bool) -> ChallengeScheme {
        match self {
            Self::Scheme(scheme) => scheme.clone(),
            Self::Named(NamedChallenge::Bearer) if has_token_service => ChallengeScheme::bearer(),
            Self::Named(_) => ChallengeScheme::basic(),
        }
    }

    pub(super) fn validate(&self, has_token_service: bool) -> Result<(), String> {
        let Self::Scheme(ChallengeScheme { scheme, parameters }) = self else { return Ok(()) };
        if !is_token(scheme) {
            return Err(format!("challenge.scheme must be a name without spaces, not {scheme:?}"));
        }
        for ChallengeParameter { name, value } in parameters {
            if !is_token(name) {
                return Err(format!("a challenge's parameter must have a name without spaces, not {name:?}"));
            }
            check_text("a challenge's parameter", value, OF_PARAMETER)?;
            let plain = |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && byte != b'"' && byte != b'\\';
            if !value.bytes().all(plain) {
                return Err(format!("a challenge's parameter must be ASCII without quotes, not {value:?}"));
            }
            if value.contains("{token_service}") && !has_token_service {
                return Err("a challenge that contains {token_service} requires token_service".to_owned());
            }
        }
        Ok(())
    }
}

impl ChallengeScheme {
    /// `Basic` with the host's name as realm. Used if the format is unknown.
    #[must_use]
    pub fn basic() -> Self {
        Self::of("Basic", &[("realm", "{host}")])
    }

    fn bearer() -> Self {
        let parameters =
            [("realm", "{token_service}"), ("service", "{host}"), ("scope", "{scope}"), ("error", "{error}")];
        Self::of("Bearer", &parameters)
    }

    fn of(scheme: &str, parameters: &[(&str, &str)]) -> Self {
        let parameter = |(name, value): &(&str, &str)| ChallengeParameter {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        Self { scheme: scheme.to_owned(), parameters: parameters.iter().map(parameter).collect() }
    }
}

/// Returns true for a token of HTTP's grammar.
fn is_token(text: &str) -> bool {
    http::HeaderName::from_bytes(text.as_bytes()).is_ok()
}
