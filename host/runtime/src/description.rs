//! What a plugin says of itself: the JSON object that `describe` returns.
//!
//! Fields that this host does not know are ignored, so that a plugin may describe what a later host understands.

mod challenge;
mod clients;
mod error_format;
mod error_template;
mod exchange;
mod limits;
mod purl;
mod released;
mod setting;
mod shown_sentence;
mod tags;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use packhouse_names::Folding;
use serde::{Deserialize, Serialize};

pub use challenge::{Challenge, ChallengeParameter, ChallengeScheme, NamedChallenge};
pub use clients::{ClientTemplate, InstallTemplate, Places, Purpose, Template};
pub use error_format::{ErrorFormat, excess_of};
pub use error_template::{CodeKind, ErrorTemplate, PlacedMembers, RefusalWords};
pub use exchange::{Exchange, ExchangeRefusal, Gives, TrustedPublishing};
pub(crate) use limits::MANIFEST;
pub use limits::{DescriptionLimits, NamedLimit};
pub use purl::PurlForm;
pub use released::ErrorStyle;
pub use setting::{Setting, SettingKind};
pub use shown_sentence::{SentencePlace, ShownSentence};
pub use tags::TagKeys;
pub use template::{fill, fill_members, fill_text};

/// Bytes of a description at most.
pub(crate) const MAX_DESCRIPTION: usize = 256 << 10;

/// A plugin's description. docs/PLUGINS.md lists these fields for authors.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The format's name in addresses, settings and tokens: lower-case letters, digits and `-`, 1 to 32 characters.
    pub format: String,
    /// The plugin's own version, for people.
    pub version: String,
    /// Kinds of repository it can serve: of `hosted`, `proxy`, `group`. At least one.
    #[serde(default = "hosted")]
    pub kinds: Vec<String>,
    /// How errors look on the wire, in one word; of no account where `errors` says it.
    #[serde(default)]
    pub error_style: ErrorStyle,
    /// By what errors are written.
    #[serde(default)]
    pub errors: Option<ErrorTemplate>,
    /// Whether the reason phrase of HTTP/1.1 is the sentence, but for a plain 404: for formats whose clients show nothing else.
    #[serde(default)]
    pub sentence_as_reason: bool,
    /// Clients that show the sentence of a refusal in one place alone.
    #[serde(default)]
    pub sentence_clients: Vec<ShownSentence>,
    /// Where codes of the plugin's own stand that are written as some of the host's are: in `code` or in `reason_code`.
    #[serde(default)]
    pub own_codes: BTreeMap<String, CodeKind>,
    /// Which challenge a 401 carries.
    #[serde(default)]
    pub challenge: Challenge,
    /// Which forms of `Authorization` count. At least one.
    #[serde(default = "usual_forms")]
    pub authorization: Vec<AuthorizationForm>,
    /// User names that go with any token, beside which `checks_username` looks for no other.
    #[serde(default = "usual_token_usernames")]
    pub token_usernames: Vec<String>,
    /// Whether the user name beside a token must be right; else it is ignored.
    #[serde(default)]
    pub checks_username: bool,
    /// Status for a refused credential on reads.
    #[serde(default = "unauthorized")]
    pub refused_read_status: u16,
    /// Status for a refused credential on writes.
    #[serde(default = "unauthorized")]
    pub refused_write_status: u16,
    /// Status for a repository that the credential does not reach.
    #[serde(default = "forbidden")]
    pub not_reached_status: u16,
    /// Formats of tokens that are good here besides the general ones; empty means this format's own name.
    #[serde(default)]
    pub token_formats: Vec<String>,
    /// Whether people can make tokens of this format's own name, which open the repositories of formats that list it in
    /// `token_formats`.
    #[serde(default)]
    pub own_tokens: bool,
    /// Kinds of credential that a proxy's upstream may need: of `basic`, `bearer`.
    #[serde(default)]
    pub upstream_credentials: Vec<String>,
    /// Whether `%2f` may stand in a path segment.
    #[serde(default)]
    pub encoded_slash: bool,
    /// Whether its clients follow a redirect of a stored file, and check the digest of what they get themselves: the operator may then let
    /// them fetch large files past the server.
    #[serde(default)]
    pub follows_redirects: bool,
    /// Whether the age of an upstream's version counts from the `Last-Modified` of its files, of which lists of versions tell nothing.
    #[serde(default)]
    pub file_dates: bool,
    /// Which spellings of a package's name are the same.
    #[serde(default)]
    pub name_folding: Folding,
    /// What OSV calls the ecosystem of its packages, as `npm`: advisories of that ecosystem are about them. Empty: none are.
    #[serde(default)]
    pub ecosystem: String,
    /// How its packages' URLs (purl) are written.
    #[serde(default)]
    pub purl: Option<PurlForm>,
    /// Prefixes of records' keys, with `{name}` for a package: a hosted repository that has such a record holds the package, as
    /// one does that shows a version of it.
    #[serde(default)]
    pub held_by: Vec<String>,
    /// Which records hold the tags of packages, so that webhooks are told of those that move.
    #[serde(default)]
    pub tags: Vec<TagKeys>,
    /// Request headers that the plugin wants to see besides `accept` and `content-*`, in lower case. Never a credential's.
    #[serde(default)]
    pub request_headers: Vec<String>,
    /// Where bearers are given out; a `bearer` challenge needs one.
    #[serde(default)]
    pub token_service: Option<TokenService>,
    /// Paths at the root of the repository host that are this format's.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Where the format's clients exchange an identity that their build service vouches for: the host answers there.
    #[serde(default)]
    pub trusted_publishing: Option<TrustedPublishing>,
    /// Requests whose intent may be `open`, as `POST /-/v1/login` or `GET /files/{name}`; a last `{name..}` takes the rest of the
    /// path. Whoever may not know which repositories there are is answered so at any name. Where nothing is said, any request may
    /// be.
    #[serde(default)]
    pub open_requests: Option<Vec<String>>,
    /// Settings of a repository of this format, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Bounds of what the format accepts.
    #[serde(default)]
    pub limits: DescriptionLimits,
    /// What to write where, so that a client uses a repository.
    #[serde(default)]
    pub clients: Vec<ClientTemplate>,
    /// How clients install a version.
    #[serde(default)]
    pub install: Vec<InstallTemplate>,
    /// Paths whose fetches count as one of their version, with `*` for any text; where nothing is said, those of every file. Of a
    /// version in several pieces, of which a client fetches each, one stands for all.
    #[serde(default)]
    pub counted_files: Vec<String>,
    /// What `error_style`, `errors`, `challenge`, `token_service` and `limits` say of refusals, put together.
    #[serde(skip)]
    pub error_format: Arc<ErrorFormat>,
}

/// A form of the field `Authorization`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorizationForm {
    /// `Basic`, with a token or a member's own password.
    Basic,
    /// `Bearer`, with a token.
    Bearer,
    /// A token and nothing else.
    Bare,
}

/// Where the host gives out bearers for this format, and which words of a scope mean which action. The host answers there.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TokenService {
    /// At the root, without a slash at its end, as `/v2/token`.
    pub path: String,
    /// The word for reading.
    #[serde(default = "pull")]
    pub read: String,
    /// The word for publishing.
    #[serde(default = "push")]
    pub publish: String,
    /// The word for deleting.
    #[serde(default = "delete")]
    pub delete: String,
}

/// A path at the root that is a format's.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claim {
    /// What `request.claim` answers.
    pub name: String,
    /// As `/v2/`; with `{repository}` where a repository's name stands. The rest below it is the request's path.
    pub path: String,
    /// For a bearer challenge: the scope's template, with `{repository}`, `{subject}` (that of the intent) and `{action}` in
    /// this order. `{subject}` may be left out.
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

/// Headers that carry credentials; no plugin sees them, whatever it asks for.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// What stands for a package in `held_by`.
const NAME: &str = "{name}";
/// Prefixes in `held_by`.
const MAX_HELD_BY: usize = 8;

impl Description {
    /// Reads what `describe` returned. Says what is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Description, String> {
        let told = |problem: String| format!("its description is not as it should be: {problem}");
        let mut description: Description =
            serde_json::from_str(text).map_err(|error| told(error.to_string()))?;
        description.limits.name_shorthand();
        description.validate().map_err(told)?;
        description.error_format = Arc::new(description.put_together().map_err(told)?);
        Ok(description)
    }

    /// How the format's refusals look, of the fields that each say a part of it.
    fn put_together(&self) -> Result<ErrorFormat, String> {
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

    /// Whether this form of `Authorization` counts.
    #[must_use]
    pub fn takes(&self, form: AuthorizationForm) -> bool {
        self.authorization.contains(&form)
    }

    /// Whether a fetch of this path counts as one of its version.
    #[must_use]
    pub fn counts_for_version(&self, path: &str) -> bool {
        self.counted_files.is_empty()
            || self.counted_files.iter().any(|pattern| packhouse_names::glob_match(pattern, path))
    }

    /// Prefixes of keys of which one record says that a repository holds this package.
    pub fn keys_that_hold(&self, package: &str) -> impl Iterator<Item = String> {
        self.held_by.iter().map(move |prefix| prefix.replace(NAME, package))
    }

    fn validate(&self) -> Result<(), String> {
        check("format", &self.format, is_name(&self.format), "1 to 32 lower-case letters, digits and `-`")?;
        check("version", &self.version, !self.version.is_empty(), "not empty")?;
        check("kinds", "", !self.kinds.is_empty(), "of hosted, proxy and group at least one")?;
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
            check("request_headers", header, !SECRET_HEADERS.contains(&header.as_str()), "no credential's")?;
        }
        self.errors.iter().try_for_each(ErrorTemplate::validate)?;
        shown_sentence::validate(&self.sentence_clients)?;
        self.challenge.validate(self.token_service.is_some())?;
        self.limits.validate()?;
        check("authorization", "", !self.authorization.is_empty(), "of basic, bearer and bare at least one")?;
        let bearers = self.token_service.is_none() || self.takes(AuthorizationForm::Bearer);
        check("authorization", "no bearer", bearers, "one that takes what the token service gives out")?;
        self.trusted_publishing.iter().try_for_each(TrustedPublishing::validate)?;
        for request in self.open_requests.iter().flatten() {
            let valid = Description::validate_open_request(request);
            check("open_requests", request, valid, "a method and a path, with `{name..}` at its end alone")?;
        }
        check("held_by", "", self.held_by.len() <= MAX_HELD_BY, "at most 8 prefixes")?;
        for prefix in &self.held_by {
            let one = prefix.matches(NAME).count() == 1 && prefix.len() <= 256 && !prefix.contains('\0');
            check("held_by", prefix, one, "a key's prefix of at most 256 bytes with {name} in it once")?;
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
        check("a claim's path", path, rooted, "below `/` and not `/repositories/`, which is every format's")?;
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
            "with {repository}, {subject} and {action} in this order",
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
            "below `/`, without a slash at its end, and not `/repositories/`",
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

fn check(what: &str, value: &str, holds: bool, wanted: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what} must be {wanted}, not {value:?}")) }
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
    fn what_makes_no_sense_is_told() {
        for (field, told) in [
            (r#""kinds": ["mirror"]"#, "hosted, proxy or group"),
            (r#""refused_read_status": 200"#, "400 to 499"),
            (r#""request_headers": ["cookie"]"#, "no credential's"),
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
            (r#""held_by": ["m/"]"#, "with {name} in it once"),
            (r#""errors": {"body": []}"#, "an object or a text"),
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
                "needs a token_service",
            ),
            (r#""authorization": []"#, "at least one"),
            (r#""authorization": ["digest"]"#, "unknown variant"),
            (r#""authorization": ["bare"], "token_service": {"path": "/t"}"#, "gives out"),
            (r#""trusted_publishing": {"paths": ["/repositories/a"]}"#, "a path at the root"),
            (r#""limits": {"named": {"A": {"max_bytes": 1}}}"#, "a limit's name"),
            (r#""limits": {"named": {"a": {}}}"#, "missing field"),
        ] {
            let text = format!(r#"{{"format": "x", "version": "1", {field}}}"#);
            let problem = Description::parse(&text).unwrap_err();
            assert!(problem.contains(told), "{field}: {problem}");
        }
        assert!(Description::parse(r#"{"format": "X", "version": "1"}"#).is_err());
        assert!(Description::parse("").is_err());
    }
}
