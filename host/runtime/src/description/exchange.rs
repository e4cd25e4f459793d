//! Trusted publishing in a description. The format's clients exchange an ID token of their build
//! service for a token of the host. The description declares the paths at the root, and the form of
//! requests and answers. The host does the exchange.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::template::{self, check_text};
use super::{Description, check};

/// Most exchanges of a description.
const MAX_EXCHANGES: usize = 16;
/// Last word of a pattern that takes a package name.
const PACKAGE: &str = "{package..}";
/// Placeholders that an audience may contain.
const OF_AUDIENCE: &[&str] = &["audience", "hostname"];
/// Placeholders that an answer may contain.
const OF_ANSWER: &[&str] = &["audience", "token", "expires", "lifetime"];
/// Placeholders that a refusal may contain.
const OF_REFUSAL: &[&str] = &["code", "message"];

/// Endpoints at which the host exchanges an ID token of a build service for a token.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TrustedPublishing {
    /// Paths at the root, such as `/_/oidc/{rest..}`, in the grammar of `open_requests`. The host
    /// answers requests to these paths that match no exchange with "not enabled".
    #[serde(default)]
    pub paths: Vec<String>,
    /// Exchanges that the host offers at these paths.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Exchange {
    /// Method and path, such as `POST /_/oidc/mint-token`. A last `{package..}` names the one
    /// package that the token is for.
    pub request: String,
    /// The result of the exchange.
    #[serde(default)]
    pub gives: ExchangeResult,
    /// Member of the request's JSON body that holds the ID token, or the token to revoke. If
    /// absent, the request carries the token as a bearer token.
    #[serde(default)]
    pub id_token: Option<String>,
    /// Accepted audience of such an ID token, in addition to the host's own `{audience}`.
    /// `{hostname}` is the host's name.
    #[serde(default)]
    pub audience: Option<String>,
    /// Status of an answer, from 200 to 299. 204 has no body. The default is 200.
    #[serde(default)]
    pub status: Option<u16>,
    /// JSON with placeholders in its strings: `{audience}`, `{token}`, `{expires}` (seconds since
    /// 1970) and `{lifetime}` (seconds). A string that consists of one of the last two becomes a
    /// number.
    pub answer: Value,
    /// Answer to a refused ID token. The default is a 401 in the format's error form.
    #[serde(default)]
    pub refusal: Option<ExchangeRefusal>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeResult {
    /// A token in exchange for an ID token.
    #[default]
    Token,
    /// The audience that ID tokens must have. Anybody may read it.
    Audience,
    /// No data. The client returns a token that it got for an ID token, and the host revokes it.
    Revocation,
}

/// Answer to a refused ID token.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExchangeRefusal {
    /// Status code from 400 to 499.
    pub status: u16,
    /// JSON with `{code}` and `{message}` in its strings.
    pub body: Value,
}

impl Exchange {
    #[must_use]
    pub fn method(&self) -> &str {
        self.request.split_once(' ').map_or("", |(method, _)| method)
    }

    fn path(&self) -> &str {
        self.request.split_once(' ').map_or("", |(_, path)| path)
    }

    /// Returns the package that a path of this exchange names.
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
        let in_range = (200..300).contains(&status);
        check("an exchange's answer", &status.to_string(), in_range, "a status of 200 to 299")?;
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
            check("trusted_publishing", path, valid, "a path at the root, with `{name..}` only at its end")?;
        }
        check("trusted_publishing", "", self.exchanges.len() <= MAX_EXCHANGES, "at most 16 exchanges")?;
        let requests: BTreeSet<&str> = self.exchanges.iter().map(|one| one.request.as_str()).collect();
        check(
            "trusted_publishing",
            "",
            requests.len() == self.exchanges.len(),
            "a list without duplicate requests",
        )?;
        self.exchanges.iter().try_for_each(Exchange::validate)
    }

    /// All its paths at the root.
    pub fn all_paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str).chain(self.exchanges.iter().map(Exchange::path))
    }
}

impl Description {
    /// Returns the exchanges at this path at the root, for all methods.
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
        assert_eq!(found("/_/a").unwrap().gives, ExchangeResult::Audience);
        assert!(found("/_/b").is_none() && found("/_/a/b").is_none());
        for (path, package) in [("/-/x/lib", "lib"), ("/-/x/@scope/lib", "@scope/lib")] {
            let exchange = found(path).unwrap();
            assert_eq!(exchange.method(), "POST");
            assert_eq!(exchange.package(&segments(path)).as_deref(), Some(package));
        }
        assert_eq!(found("/_/a").unwrap().package(&segments("/_/a")), None);
    }

    #[test]
    fn invalid_exchanges_are_refused() {
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
