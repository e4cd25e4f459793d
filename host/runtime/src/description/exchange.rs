//! Trusted publishing as a description declares it: at which paths at the root the format's clients exchange an ID token of their build
//! service for a token of the host's, and what requests and answers look like. The host does the exchange.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::template::{self, check_text};
use super::{Description, check};

/// Exchanges that a description has at most.
const MAX_EXCHANGES: usize = 16;
/// What a last word of a pattern that takes a package's name is called.
const PACKAGE: &str = "{package..}";
/// What may stand in an audience.
const OF_AUDIENCE: &[&str] = &["audience", "hostname"];
/// What may stand in an answer.
const OF_ANSWER: &[&str] = &["audience", "token", "expires", "lifetime"];
/// What may stand in a refusal.
const OF_REFUSAL: &[&str] = &["code", "message"];

/// Where clients exchange an identity that their build service vouches for against a token.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TrustedPublishing {
    /// Paths at the root, as `/_/oidc/{rest..}`, in the grammar of `open_requests`. What is not an exchange there is not enabled.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What the host does there.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
}

/// One request of the format's clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Exchange {
    /// Its method and path, as `POST /_/oidc/mint-token`. What a last `{package..}` takes is the one package that the token is for.
    pub request: String,
    /// What it is answered with.
    #[serde(default)]
    pub gives: Gives,
    /// The member of a JSON body that holds the ID token, or the token that is given back; where nothing is said, it comes as a bearer.
    #[serde(default)]
    pub id_token: Option<String>,
    /// For whom such an ID token is made, besides the host's own `{audience}`; `{hostname}` is the host's name.
    #[serde(default)]
    pub audience: Option<String>,
    /// The status of an answer: 200 to 299, of which 204 has no body. 200 where nothing is said.
    #[serde(default)]
    pub status: Option<u16>,
    /// JSON with placeholders in its texts: `{audience}`, `{token}`, `{expires}` (seconds since 1970) and `{lifetime}` (seconds). A text
    /// that is one of the last two alone is a number.
    pub answer: Value,
    /// How a refused ID token is answered; 401 as the format's errors are, where nothing is said.
    #[serde(default)]
    pub refusal: Option<ExchangeRefusal>,
}

/// What an exchange gives.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gives {
    /// A token, for an ID token.
    #[default]
    Token,
    /// For whom ID tokens are to be made, to anybody.
    Audience,
    /// Nothing: a token that was given out for an ID token is given back, and counts no more.
    Revocation,
}

/// How a refused ID token is answered.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExchangeRefusal {
    /// 400 to 499.
    pub status: u16,
    /// JSON with `{code}` and `{message}` in its texts.
    pub body: Value,
}

impl Exchange {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.request.split_once(' ').map_or("", |(method, _)| method)
    }

    fn path(&self) -> &str {
        self.request.split_once(' ').map_or("", |(_, path)| path)
    }

    /// The package that a path of this exchange names.
    #[must_use]
    pub fn package(&self, path: &[String]) -> Option<String> {
        let words = self.path().trim_start_matches('/').split('/').count();
        let named = self.path().ends_with(PACKAGE).then(|| path.get(words - 1..))??;
        Some(named.join("/"))
    }

    fn validate(&self) -> Result<(), String> {
        let valid = Description::validate_root_path(self.path())
            && self.method().bytes().all(|byte| byte.is_ascii_uppercase())
            && !self.method().is_empty();
        check("an exchange's request", &self.request, valid, "a method and a path at the root")?;
        let audience = self.audience.as_deref().unwrap_or_default();
        check_text("an exchange's audience", audience, OF_AUDIENCE)?;
        template::check("an exchange's answer", &self.answer, OF_ANSWER)?;
        let status = self.status.unwrap_or(200);
        let well = (200..300).contains(&status);
        check("an exchange's answer", &status.to_string(), well, "a status of 200 to 299")?;
        let Some(refusal) = &self.refusal else { return Ok(()) };
        let status = (400..500).contains(&refusal.status);
        check("an exchange's status", &refusal.status.to_string(), status, "400 to 499")?;
        template::check("an exchange's refusal", &refusal.body, OF_REFUSAL)
    }
}

impl TrustedPublishing {
    pub(crate) fn validate(&self) -> Result<(), String> {
        for path in &self.paths {
            let valid = Description::validate_root_path(path);
            check("trusted_publishing", path, valid, "a path at the root, with `{name..}` at its end alone")?;
        }
        check("trusted_publishing", "", self.exchanges.len() <= MAX_EXCHANGES, "at most 16 exchanges")?;
        let requests: BTreeSet<&str> = self.exchanges.iter().map(|one| one.request.as_str()).collect();
        check("trusted_publishing", "", requests.len() == self.exchanges.len(), "each request once")?;
        self.exchanges.iter().try_for_each(Exchange::validate)
    }

    /// All its paths at the root.
    pub fn all_paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str).chain(self.exchanges.iter().map(Exchange::path))
    }
}

impl Description {
    /// The exchanges at this path at the root, whatever their methods.
    pub fn exchanges_at(&self, path: &[String]) -> impl Iterator<Item = &Exchange> {
        let all = self.trusted_publishing.iter().flat_map(|declared| &declared.exchanges);
        all.filter(|exchange| crate::path_pattern::is_at(exchange.path(), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(exchanges: &str) -> Result<Description, String> {
        let text = format!(
            r#"{{"format": "x", "version": "1", "trusted_publishing": {{"exchanges": [{exchanges}]}}}}"#
        );
        Description::parse(&text).map_err(|error| error.to_string())
    }

    fn segments(path: &str) -> Vec<String> {
        path.split('/').skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn an_exchange_is_found_by_its_path_and_names_its_package() {
        let description = described(
            r#"{"request": "GET /_/a", "gives": "audience", "answer": {"audience": "{audience}"}},
               {"request": "POST /-/x/{package..}", "audience": "x:{hostname}", "answer": {"token": "{token}"}}"#,
        );
        let description = description.unwrap();
        let found = |path: &str| description.exchanges_at(&segments(path)).next().cloned();
        assert_eq!(found("/_/a").unwrap().gives, Gives::Audience);
        assert!(found("/_/b").is_none() && found("/_/a/b").is_none());
        for (path, package) in [("/-/x/lib", "lib"), ("/-/x/@scope/lib", "@scope/lib")] {
            let exchange = found(path).unwrap();
            assert_eq!(exchange.method(), "POST");
            assert_eq!(exchange.package(&segments(path)).as_deref(), Some(package));
        }
        assert_eq!(found("/_/a").unwrap().package(&segments("/_/a")), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            r#"{"request": "/_/a", "answer": {}}"#,
            r#"{"request": "get /_/a", "answer": {}}"#,
            r#"{"request": "GET /repositories/a", "answer": {}}"#,
            r#"{"request": "GET /_/a", "answer": {"x": "{secret}"}}"#,
            r#"{"request": "GET /_/a", "audience": "{token}", "answer": {}}"#,
            r#"{"request": "GET /_/a", "answer": {}, "status": 404}"#,
            r#"{"request": "GET /_/a", "answer": {}, "refusal": {"status": 500, "body": {}}}"#,
            r#"{"request": "GET /_/a", "answer": {}, "refusal": {"status": 400, "body": ["{token}"]}}"#,
            r#"{"request": "GET /_/a", "answer": {}}, {"request": "GET /_/a", "answer": {}}"#,
        ] {
            assert!(described(wrong).is_err(), "{wrong}");
        }
    }
}
