//! A plugin's description: the JSON object that `describe` returns.
//!
//! Unknown fields are ignored, so that a plugin may describe features of a later host.

mod challenge;
mod client_sentence;
mod clients;
mod error_format;
mod error_template;
mod exchange;
mod limits;
mod purl;
mod released;
mod setting;
mod tags;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use packhouse_names::Folding;
use serde::{Deserialize, Serialize};

pub use challenge::{Challenge, ChallengeParameter, ChallengeScheme, NamedChallenge};
pub use client_sentence::{ClientSentence, SentencePlace};
pub use clients::{ClientTemplate, InstallTemplate, Purpose, Template, TemplateValues};
pub use error_format::{ErrorFormat, excess_of};
pub use error_template::{CodeKind, ErrorTemplate, PlacedMembers, RefusalWords};
pub use exchange::{Exchange, ExchangeRefusal, ExchangeResult, TrustedPublishing};
pub(crate) use limits::MANIFEST;
pub use limits::{DescriptionLimits, NamedLimit};
pub use purl::PurlForm;
pub use released::ErrorStyle;
pub use setting::{Setting, SettingKind, SettingUnit};
pub use tags::TagKeys;
pub use template::{fill, fill_members, fill_text};

/// Most bytes of a description.
pub(crate) const MAX_DESCRIPTION: usize = 256 << 10;

/// A plugin's description. docs/plugins/description.md lists these fields for authors.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The format's name in addresses, settings and tokens: 1 to 32 lower-case letters, digits and
    /// `-`.
    pub format: String,
    /// The plugin's own version, for people.
    pub version: String,
    /// Kinds of repository that it can serve: `hosted`, `proxy`, `group`. At least one.
    #[serde(default = "hosted")]
    pub kinds: Vec<String>,
    /// Named error format. Ignored if `errors` is set.
    #[serde(default)]
    pub error_style: ErrorStyle,
    /// Template of the format's errors.
    #[serde(default)]
    pub errors: Option<ErrorTemplate>,
    /// True if the reason phrase of HTTP/1.1 carries the error sentence, except for a plain 404.
    /// Set it for formats whose clients show only the reason phrase.
    #[serde(default)]
    pub sentence_as_reason: bool,
    /// Clients that show the sentence of a refusal in only one place.
    #[serde(default)]
    pub sentence_clients: Vec<ClientSentence>,
    /// The plugin's own codes that go into the same member as the host's codes: `code` or
    /// `reason_code`.
    #[serde(default)]
    pub own_codes: BTreeMap<String, CodeKind>,
    /// The challenge of a 401 response.
    #[serde(default)]
    pub challenge: Challenge,
    /// Accepted forms of `Authorization`. At least one.
    #[serde(default = "usual_forms")]
    pub authorization: Vec<AuthorizationForm>,
    /// User names that are accepted with any token. `checks_username` exempts them.
    #[serde(default = "usual_token_usernames")]
    pub token_usernames: Vec<String>,
    /// True if the user name next to a token must match the token. If false, the host ignores the
    /// user name.
    #[serde(default)]
    pub checks_username: bool,
    /// Status for a refused credential on reads.
    #[serde(default = "unauthorized")]
    pub refused_read_status: u16,
    /// Status for a refused credential on writes.
    #[serde(default = "unauthorized")]
    pub refused_write_status: u16,
    /// Status for a repository that the credential cannot access.
    #[serde(default = "forbidden")]
    pub not_reached_status: u16,
    /// Formats whose tokens are accepted here, in addition to the general ones. Empty means this
    /// format's own name.
    #[serde(default)]
    pub token_formats: Vec<String>,
    /// True if people can create tokens of this format's own name. Such a token opens the
    /// repositories of every format that lists this name in `token_formats`.
    #[serde(default)]
    pub own_tokens: bool,
    /// Kinds of credential that a proxy's upstream may need: `basic`, `bearer`.
    #[serde(default)]
    pub upstream_credentials: Vec<String>,
    /// True if a path segment may contain `%2f`.
    #[serde(default)]
    pub encoded_slash: bool,
    /// True if clients follow a redirect to a stored file and check its digest themselves. The
    /// operator may then let them fetch large files directly from the storage.
    #[serde(default)]
    pub follows_redirects: bool,
    /// True if the age of an upstream's version counts from the `Last-Modified` of its files,
    /// because its version lists contain no dates.
    #[serde(default)]
    pub file_dates: bool,
    /// Rule for spellings of a package name that are equal.
    #[serde(default)]
    pub name_folding: Folding,
    /// OSV's name of the packages' ecosystem, such as `npm`. Advisories of that ecosystem apply to
    /// the packages. If empty, no advisories apply.
    #[serde(default)]
    pub ecosystem: String,
    /// Form of its packages' URLs (purl).
    #[serde(default)]
    pub purl: Option<PurlForm>,
    /// Prefixes of record keys, with `{name}` for a package. A hosted repository holds a package if
    /// it has such a record or shows a version of the package.
    #[serde(default)]
    pub held_by: Vec<String>,
    /// Records that hold the tags of packages. The host reads them to send webhooks when a tag
    /// moves.
    #[serde(default)]
    pub tags: Vec<TagKeys>,
    /// Request headers that the plugin receives in addition to `accept` and `content-*`, in lower
    /// case. Credential headers are excluded.
    #[serde(default)]
    pub request_headers: Vec<String>,
    /// Endpoint that gives out bearer tokens. A `bearer` challenge requires one.
    #[serde(default)]
    pub token_service: Option<TokenService>,
    /// Paths at the root of the repository host that belong to this format.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Endpoints at which the host exchanges an ID token of a client's build service for a token.
    #[serde(default)]
    pub trusted_publishing: Option<TrustedPublishing>,
    /// Requests whose intent may be `open`, such as `POST /-/v1/login` or `GET /files/{name}`. A
    /// last `{name..}` takes the rest of the path. A client that may not learn which repositories
    /// exist gets the same answer to such a request for every repository name. If absent, any
    /// request may be open.
    #[serde(default)]
    pub open_requests: Option<Vec<String>>,
    /// Settings of a repository of this format, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Settings of the host that the plugin never reads, such as `keep_untagged`. Forms leave them
    /// out; the API still accepts them.
    #[serde(default)]
    pub unused_settings: Vec<String>,
    /// Bounds of what the format accepts.
    #[serde(default)]
    pub limits: DescriptionLimits,
    /// Instructions for clients: the text to write into which file.
    #[serde(default)]
    pub clients: Vec<ClientTemplate>,
    /// Commands with which clients install a version.
    #[serde(default)]
    pub install: Vec<InstallTemplate>,
    /// Paths whose fetches count as fetches of their version, with `*` for any text. If absent,
    /// every file counts. If a client fetches several files of a version, list only one of them.
    #[serde(default)]
    pub counted_files: Vec<String>,
    /// Combined error format from `error_style`, `errors`, `challenge`, `token_service` and
    /// `limits`.
    #[serde(skip)]
    pub error_format: Arc<ErrorFormat>,
}

/// A form of the field `Authorization`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorizationForm {
    /// `Basic`, with a token or a member's password.
    Basic,
    Bearer,
    /// A token and nothing else.
    Bare,
}

/// The endpoint at which the host gives out bearer tokens for this format, and the scope words for
/// each action.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TokenService {
    /// Path at the root, without a trailing slash, such as `/v2/token`.
    pub path: String,
    #[serde(default = "pull")]
    pub read: String,
    #[serde(default = "push")]
    pub publish: String,
    #[serde(default = "delete")]
    pub delete: String,
}

/// A path at the root that belongs to a format.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// The value that `request.claim` returns.
    pub name: String,
    /// Path such as `/v2/`, with `{repository}` in place of a repository's name. The rest below it
    /// is the request's path.
    pub path: String,
    /// Scope template of a bearer challenge, with `{repository}`, `{subject}` (that of the intent)
    /// and `{action}` in this order. `{subject}` may be left out.
    #[serde(default)]
    pub challenge: Option<String>,
}

fn hosted() -> Vec<String> {
    vec!["hosted".to_owned()]
}

fn usual_forms() -> Vec<AuthorizationForm> {
    vec![AuthorizationForm::Basic, AuthorizationForm::Bearer]
}

fn usual_token_usernames() -> Vec<String> {
    vec!["__token__".to_owned()]
}

fn unauthorized() -> u16 {
    401
}

fn forbidden() -> u16 {
    403
}

fn pull() -> String {
    "pull".to_owned()
}

fn push() -> String {
    "push".to_owned()
}

fn delete() -> String {
    "delete".to_owned()
}

/// Headers that carry credentials. Plugins never receive them.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// Placeholder of the package in `held_by`.
const NAME: &str = "{name}";
const MAX_HELD_BY: usize = 8;

impl Description {
    /// Parses the output of `describe`. The error names the invalid field and the reason.
    pub fn parse(text: &str) -> Result<Description, String> {
        let invalid = |problem: String| format!("its description is invalid: {problem}");
        let mut description: Description =
            serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        description.limits.name_shorthand();
        description.validate().map_err(invalid)?;
        description.error_format = Arc::new(description.combined_error_format().map_err(invalid)?);
        Ok(description)
    }

    /// Combines the fields that define parts of the error format, and returns an error if they do
    /// not fit.
    fn combined_error_format(&self) -> Result<ErrorFormat, String> {
        let (mut template, manifest) = match &self.errors {
            Some(template) => (template.clone(), None),
            None => self.error_style.stands_for()?,
        };
        template.own_codes.clone_from(&self.own_codes);
        for (name, limit) in &self.limits.named {
            let shorthand = manifest.as_ref().filter(|_| name == MANIFEST);
            if let Some(words) = limit.excess.as_ref().or(shorthand) {
                template.refusals.insert(excess_of(name), words.clone());
            }
        }
        Ok(ErrorFormat {
            template,
            challenge: self.challenge.scheme(self.token_service.is_some()),
            token_service: self.token_service.as_ref().map(|service| service.path.clone()),
            sentence_as_reason: self.sentence_as_reason,
            sentence_clients: self.sentence_clients.clone(),
        })
    }

    /// Returns true if this form of `Authorization` is accepted.
    #[must_use]
    pub fn takes(&self, form: AuthorizationForm) -> bool {
        self.authorization.contains(&form)
    }

    /// Returns true if a fetch of this path counts as a fetch of its version.
    #[must_use]
    pub fn counts_for_version(&self, path: &str) -> bool {
        self.counted_files.is_empty()
            || self.counted_files.iter().any(|pattern| packhouse_names::glob_match(pattern, path))
    }

    /// Key prefixes for this package. One record below any of them means that the repository holds
    /// the package.
    pub fn keys_that_hold(&self, package: &str) -> impl Iterator<Item = String> {
        self.held_by.iter().map(move |prefix| prefix.replace(NAME, package))
    }

    fn validate(&self) -> Result<(), String> {
        check("format", &self.format, is_name(&self.format), "1 to 32 lower-case letters, digits and `-`")?;
        check("version", &self.version, !self.version.is_empty(), "not empty")?;
        check("kinds", "", !self.kinds.is_empty(), "at least one of hosted, proxy and group")?;
        for kind in &self.kinds {
            check(
                "kinds",
                kind,
                ["hosted", "proxy", "group"].contains(&kind.as_str()),
                "hosted, proxy or group",
            )?;
        }
        for kind in &self.upstream_credentials {
            check(
                "upstream_credentials",
                kind,
                ["basic", "bearer"].contains(&kind.as_str()),
                "basic or bearer",
            )?;
        }
        for status in [self.refused_read_status, self.refused_write_status, self.not_reached_status] {
            check("a status", &status.to_string(), (400..500).contains(&status), "400 to 499")?;
        }
        for header in &self.request_headers {
            let known = http::HeaderName::from_lowercase(header.as_bytes()).is_ok();
            check("request_headers", header, known, "names in lower case")?;
            check(
                "request_headers",
                header,
                !SECRET_HEADERS.contains(&header.as_str()),
                "a header without credentials",
            )?;
        }
        self.errors.iter().try_for_each(ErrorTemplate::validate)?;
        client_sentence::validate(&self.sentence_clients)?;
        self.challenge.validate(self.token_service.is_some())?;
        self.limits.validate()?;
        check("authorization", "", !self.authorization.is_empty(), "at least one of basic, bearer and bare")?;
        let bearers = self.token_service.is_none() || self.takes(AuthorizationForm::Bearer);
        check("authorization", "without bearer", bearers, "able to accept the tokens of the token service")?;
        self.trusted_publishing.iter().try_for_each(TrustedPublishing::validate)?;
        for request in self.open_requests.iter().flatten() {
            let valid = Description::validate_open_request(request);
            check("open_requests", request, valid, "a method and a path, with `{name..}` only at its end")?;
        }
        check("held_by", "", self.held_by.len() <= MAX_HELD_BY, "at most 8 prefixes")?;
        for prefix in &self.held_by {
            let one = prefix.matches(NAME).count() == 1 && prefix.len() <= 256 && !prefix.contains('\0');
            check("held_by", prefix, one, "a key prefix of at most 256 bytes that contains {name} once")?;
        }
        clients::validate(&self.clients, &self.install)?;
        check("counted_files", "", self.counted_files.len() <= 16, "at most 16 patterns")?;
        self.claims.iter().try_for_each(Claim::validate)?;
        self.token_service.iter().try_for_each(TokenService::validate)?;
        self.settings.iter().try_for_each(|(name, setting)| setting.validate(name))
    }
}

impl Claim {
    fn validate(&self) -> Result<(), String> {
        check("a claim's name", &self.name, !self.name.is_empty(), "not empty")?;
        let path = &self.path;
        let rooted = path.starts_with('/') && path.len() > 1 && !path.starts_with("/repositories/");
        check(
            "a claim's path",
            path,
            rooted,
            "below `/` and outside `/repositories/`, which all formats share",
        )?;
        let template = self.challenge.as_deref().unwrap_or("{repository}{action}");
        let at = |place: &str| template.find(place);
        let in_order = match (at("{repository}"), at("{subject}"), at("{action}")) {
            (Some(repository), subject, Some(action)) => {
                repository < action && subject.is_none_or(|subject| (repository..action).contains(&subject))
            }
            _ => false,
        };
        check(
            "a claim's challenge",
            template,
            in_order,
            "a text with {repository}, {subject} and {action} in this order",
        )
    }
}

impl TokenService {
    fn validate(&self) -> Result<(), String> {
        let path = &self.path;
        let rooted = path.starts_with('/') && path.len() > 1 && !path.ends_with('/') && !path.contains("//");
        let ours = rooted && !path.starts_with("/repositories/");
        check(
            "token_service.path",
            path,
            ours,
            "below `/` and outside `/repositories/`, without a slash at its end",
        )?;
        for word in [&self.read, &self.publish, &self.delete] {
            let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
            check("a word of token_service", word, plain, "lower-case letters")?;
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(allowed)
}

fn check(what: &str, value: &str, holds: bool, expected: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what} must be {expected}, not {value:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_description_has_defaults() {
        let description = Description::parse(r#"{"format": "x", "version": "1", "later": true}"#).unwrap();
        assert_eq!(description.kinds, ["hosted"]);
        assert_eq!((description.refused_read_status, description.not_reached_status), (401, 403));
    }

    #[test]
    fn invalid_descriptions_are_refused_with_a_reason() {
        for (field, expected) in [
            (r#""kinds": ["mirror"]"#, "hosted, proxy or group"),
            (r#""refused_read_status": 200"#, "400 to 499"),
            (r#""request_headers": ["cookie"]"#, "a header without credentials"),
            (r#""claims": [{"name": "a", "path": "/"}]"#, "a claim's path"),
            (
                r#""claims": [{"name": "a", "path": "/a/", "challenge": "{action}:{repository}"}]"#,
                "in this order",
            ),
            (r#""token_service": {"path": "/v2/token/"}"#, "token_service.path"),
            (r#""token_service": {"path": "/t", "read": "a b"}"#, "lower-case letters"),
            (r#""settings": {"s": {"kind": "boolean", "default": 1}}"#, "a setting's default"),
            (r#""encoded_slash": 1"#, "expected a boolean"),
            (r#""name_folding": "upper""#, "unknown variant"),
            (r#""held_by": ["m/"]"#, "that contains {name} once"),
            (r#""errors": {"body": []}"#, "an object or a string"),
            (r#""errors": {"body": {"a": "{who}"}}"#, "the placeholders of errors.body"),
            (r#""errors": {"body": "", "refusals": {"401": {"status": 200}}}"#, "400 to 599"),
            (r#""errors": {"body": "", "refusals": {"401": {"code": "{message}"}}}"#, "the placeholders of"),
            (r#""errors": {"body": "", "content_type": "a\nb"}"#, "a media type"),
            (r#""own_codes": {"X": "body"}"#, "unknown variant"),
            (r#""challenge": "digest""#, "did not match any variant"),
            (r#""challenge": {"scheme": "A b"}"#, "without spaces"),
            (
                r#""challenge": {"scheme": "A", "parameters": [{"name": "b", "value": "\""}]}"#,
                "without quotes",
            ),
            (
                r#""challenge": {"scheme": "A", "parameters": [{"name": "b", "value": "{token_service}"}]}"#,
                "requires token_service",
            ),
            (r#""authorization": []"#, "at least one"),
            (r#""authorization": ["digest"]"#, "unknown variant"),
            (
                r#""authorization": ["bare"], "token_service": {"path": "/t"}"#,
                "accept the tokens of the token service",
            ),
            (r#""trusted_publishing": {"paths": ["/repositories/a"]}"#, "a path at the root"),
            (r#""limits": {"named": {"A": {"max_bytes": 1}}}"#, "a limit's name"),
            (r#""limits": {"named": {"a": {}}}"#, "missing field"),
        ] {
            let text = format!(r#"{{"format": "x", "version": "1", {field}}}"#);
            let problem = Description::parse(&text).unwrap_err();
            assert!(problem.contains(expected), "{field}: {problem}");
        }
        assert!(Description::parse(r#"{"format": "X", "version": "1"}"#).is_err());
        assert!(Description::parse("").is_err());
    }
}
