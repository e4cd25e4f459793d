//! What a format tells the host of itself: a JSON object, so that it can grow. docs/PLUGINS.md lists the fields.

use crate::description_parts::{
    Limits, NamedLimit, Purl, SentencePlace, ShownSentence, TagKeys, TokenService, TrustedPublishing,
};
use crate::{Challenge, Client, CodeKind, ErrorTemplate, Exchange, Install, RefusalWords};
use packhouse_names::Folding;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How the host writes a failure, in one word. [`ErrorTemplate`] says it in any other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorStyle {
    /// One object: `error`, with `reason_code` or `code`.
    Plain,
    /// A list under `errors`, as registries of images do it.
    Registry,
}

/// A form of the field `Authorization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Authorization {
    /// `Basic`, with a token or a member's own password.
    Basic,
    /// `Bearer`, with a token.
    Bearer,
    /// A token and nothing else.
    Bare,
}

/// A path at the root of the host that the format serves besides `/repositories/NAME/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// By which requests and rows name it.
    pub name: String,
    /// As `/v2/`, with `{repository}` where a repository's name stands. What is below it is the request's path.
    pub path: String,
    /// For a bearer challenge: the scope's template, with `{repository}`, `{subject}` and `{action}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
}

impl Claim {
    /// A claim of this path under this name.
    pub fn new(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), path: path.into(), challenge: None }
    }

    /// The scope's template of its challenge.
    pub fn challenge(mut self, template: impl Into<String>) -> Self {
        self.challenge = Some(template.into());
        self
    }
}

/// A setting that each repository of the format has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    kind: &'static str,
    default: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    summary: String,
}

impl Setting {
    /// Yes or no; `summary` is one line for people.
    pub fn boolean(default: bool, summary: impl Into<String>) -> Self {
        Self::new("boolean", default.into(), summary)
    }

    /// A whole number, not negative.
    pub fn integer(default: u64, summary: impl Into<String>) -> Self {
        Self::new("integer", default.into(), summary)
    }

    /// Text.
    pub fn text(default: &str, summary: impl Into<String>) -> Self {
        Self::new("text", default.into(), summary)
    }

    /// One of several words, of which the first holds where nothing is set.
    pub fn choice(choices: &[&str], summary: impl Into<String>) -> Self {
        let default = choices.first().copied().unwrap_or_default();
        Self { choices: owned(choices), ..Self::new("choice", default.into(), summary) }
    }

    /// Texts; none where nothing is set.
    pub fn list(summary: impl Into<String>) -> Self {
        Self::new("list", Value::Array(Vec::new()), summary)
    }

    fn new(kind: &'static str, default: Value, summary: impl Into<String>) -> Self {
        Self { kind, default, choices: Vec::new(), summary: summary.into() }
    }
}

/// What a format is called and what the host has to know of it. Each field has a default that suits a format without
/// peculiarities.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    format: String,
    version: String,
    kinds: Vec<String>,
    error_style: ErrorStyle,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<ErrorTemplate>,
    #[serde(skip_serializing_if = "is_false")]
    sentence_as_reason: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sentence_clients: Vec<ShownSentence>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    own_codes: BTreeMap<String, CodeKind>,
    challenge: Challenge,
    authorization: Vec<Authorization>,
    token_usernames: Vec<String>,
    checks_username: bool,
    refused_read_status: u16,
    refused_write_status: u16,
    not_reached_status: u16,
    token_formats: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    own_tokens: bool,
    upstream_credentials: Vec<String>,
    encoded_slash: bool,
    #[serde(skip_serializing_if = "is_false")]
    follows_redirects: bool,
    #[serde(skip_serializing_if = "is_false")]
    file_dates: bool,
    name_folding: Folding,
    #[serde(skip_serializing_if = "String::is_empty")]
    ecosystem: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<Purl>,
    held_by: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<TagKeys>,
    request_headers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_service: Option<TokenService>,
    claims: Vec<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_publishing: Option<TrustedPublishing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_requests: Option<Vec<String>>,
    settings: BTreeMap<String, Setting>,
    limits: Limits,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clients: Vec<Client>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    install: Vec<Install>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted_files: Vec<String>,
}

impl Description {
    /// A format of this name (lower-case letters, digits and `-`) and the plugin's own version. It has hosted repositories
    /// alone, `Basic` challenges and plain errors.
    pub fn new(format: impl Into<String>, version: impl Into<String>) -> Self {
        let format = format.into();
        Self {
            token_formats: vec![format.clone()],
            format,
            version: version.into(),
            kinds: vec!["hosted".to_owned()],
            error_style: ErrorStyle::Plain,
            errors: None,
            sentence_as_reason: false,
            sentence_clients: Vec::new(),
            own_codes: BTreeMap::new(),
            challenge: Challenge::Basic,
            authorization: vec![Authorization::Basic, Authorization::Bearer],
            token_usernames: vec!["__token__".to_owned()],
            checks_username: false,
            refused_read_status: 401,
            refused_write_status: 401,
            not_reached_status: 403,
            own_tokens: false,
            upstream_credentials: Vec::new(),
            encoded_slash: false,
            follows_redirects: false,
            file_dates: false,
            name_folding: Folding::None,
            ecosystem: String::new(),
            purl: None,
            held_by: Vec::new(),
            tags: Vec::new(),
            request_headers: Vec::new(),
            token_service: None,
            claims: Vec::new(),
            trusted_publishing: None,
            open_requests: None,
            settings: BTreeMap::new(),
            limits: Limits::default(),
            clients: Vec::new(),
            install: Vec::new(),
            counted_files: Vec::new(),
        }
    }

    /// What its clients are told: what to write where.
    pub fn clients(mut self, clients: impl IntoIterator<Item = Client>) -> Self {
        self.clients.extend(clients);
        self
    }

    /// How its clients install a version.
    pub fn install(mut self, install: impl IntoIterator<Item = Install>) -> Self {
        self.install.extend(install);
        self
    }

    /// Paths whose fetches count as one of their version, with `*` for any text: one file of those that a client fetches together.
    /// Those of every file if not said.
    pub fn counted_files(mut self, patterns: &[&str]) -> Self {
        self.counted_files = owned(patterns);
        self
    }

    /// Which kinds of repository it has: `hosted`, `proxy`, `group`.
    pub fn kinds(mut self, kinds: &[&str]) -> Self {
        self.kinds = owned(kinds);
        self
    }

    /// How the host writes a failure, in one word.
    pub fn error_style(mut self, style: ErrorStyle) -> Self {
        self.error_style = style;
        self
    }

    /// By what the host writes failures, its own refusals among them. It stands in place of the error style.
    pub fn errors(mut self, template: ErrorTemplate) -> Self {
        self.errors = Some(template);
        self
    }

    /// The reason phrase of HTTP/1.1 is the sentence of a refusal: for formats whose clients show nothing else. The one of RFC 9110 if
    /// not said.
    pub fn sentence_as_reason(mut self) -> Self {
        self.sentence_as_reason = true;
        self
    }

    /// Clients whose `User-Agent` starts so show the sentence of a refusal in this place alone. They are known by it where nobody may
    /// know the format, too.
    pub fn sentence_clients(mut self, starts: &[&str], place: &SentencePlace) -> Self {
        let client = |start: &&str| ShownSentence { user_agent: (*start).to_owned(), place: place.clone() };
        self.sentence_clients.extend(starts.iter().map(client));
        self
    }

    /// Where a code of the format's own stands that is written as some of the host's are. Among the format's own if not said.
    pub fn own_code(mut self, code: impl Into<String>, kind: CodeKind) -> Self {
        self.own_codes.insert(code.into(), kind);
        self
    }

    /// What OSV calls the ecosystem of its packages, as `npm` or `PyPI`: advisories about packages of that name are about those of this
    /// format. None if not said.
    pub fn ecosystem(mut self, name: impl Into<String>) -> Self {
        self.ecosystem = name.into();
        self
    }

    /// The type of its packages' URLs (purl), and what joins namespace and name in a package's own name. None if not said.
    pub fn purl(mut self, kind: &'static str, joint: &'static str) -> Self {
        self.purl = Some(Purl { kind, joint });
        self
    }

    /// What a 401 asks for.
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.challenge = challenge;
        self
    }

    /// Which forms of `Authorization` count. `Basic` and `Bearer` if not said.
    pub fn authorization(mut self, forms: &[Authorization]) -> Self {
        self.authorization = forms.to_vec();
        self
    }

    /// User names that go with any token, where the format [checks](Self::checks_username) them. `__token__` if not said.
    pub fn token_usernames(mut self, names: &[&str]) -> Self {
        self.token_usernames = owned(names);
        self
    }

    /// The user name beside a token must be its owner's.
    pub fn checks_username(mut self) -> Self {
        self.checks_username = true;
        self
    }

    /// The status for a credential that does not count: when reading, when writing. 401 and 401 if not said.
    pub fn refused_status(mut self, read: u16, write: u16) -> Self {
        (self.refused_read_status, self.refused_write_status) = (read, write);
        self
    }

    /// The status for a repository that the credential does not reach. 403 if not said.
    pub fn not_reached_status(mut self, status: u16) -> Self {
        self.not_reached_status = status;
        self
    }

    /// Which formats of token open its repositories. Its own name if not said.
    pub fn token_formats(mut self, formats: &[&str]) -> Self {
        self.token_formats = owned(formats);
        self
    }

    /// People can make tokens of this format: its own name is then one of the formats of tokens.
    pub fn own_tokens(mut self) -> Self {
        self.own_tokens = true;
        self
    }

    /// Which kinds of credential a proxy's upstream may need: `basic`, `bearer`. None if not said.
    pub fn upstream_credentials(mut self, kinds: &[&str]) -> Self {
        self.upstream_credentials = owned(kinds);
        self
    }

    /// `%2F` is allowed within a segment of a path.
    pub fn encoded_slash(mut self) -> Self {
        self.encoded_slash = true;
        self
    }

    /// Clients follow a redirect when they fetch a stored file, and check its digest themselves: an operator may then let them fetch large
    /// files from S3, past the server, which cannot check what they get.
    pub fn follows_redirects(mut self) -> Self {
        self.follows_redirects = true;
        self
    }

    /// The age of an upstream's version counts from the `Last-Modified` of its files, of which lists of versions tell nothing: there the host
    /// leaves it to the file ([`FileDecides`](crate::ReleaseVerdict::FileDecides)). If not said, the age of a version without a stated time
    /// counts from when the server first saw it listed.
    pub fn file_dates(mut self) -> Self {
        self.file_dates = true;
        self
    }

    /// Which spellings of a name are the same to the format: so the host reads the patterns that people write. Each by itself if
    /// not said.
    pub fn name_folding(mut self, folding: Folding) -> Self {
        self.name_folding = folding;
        self
    }

    /// A hosted repository holds a package as long as it shows a version of it. Where a format keeps more of a package than it
    /// shows: a prefix of its records' keys, with `{name}` for the package, of which one that is there says so too.
    pub fn held_by(mut self, prefix: impl Into<String>) -> Self {
        self.held_by.push(prefix.into());
        self
    }

    /// Records that hold all tags of a package: their keys are this prefix and the package, and at this member of the record, a
    /// JSON object, is an object of what each tag names. So the host can tell webhooks of tags that move.
    pub fn tags_of_package(mut self, prefix: impl Into<String>, member: impl Into<String>) -> Self {
        self.tags.push(TagKeys { prefix: prefix.into(), separator: None, member: member.into() });
        self
    }

    /// The same where each tag has a record of its own: `separator` stands in its key between the package and the tag, and the
    /// member is what the tag names.
    pub fn record_of_tag(
        mut self,
        prefix: impl Into<String>,
        separator: impl Into<String>,
        member: impl Into<String>,
    ) -> Self {
        let separator = Some(separator.into());
        self.tags.push(TagKeys { prefix: prefix.into(), separator, member: member.into() });
        self
    }

    /// Request headers that it wants to see, besides `accept` and `content-*`; in lower case.
    pub fn request_headers(mut self, names: &[&str]) -> Self {
        self.request_headers = owned(names);
        self
    }

    /// Where the host gives out bearers; a bearer challenge needs one.
    pub fn token_service(mut self, service: TokenService) -> Self {
        self.token_service = Some(service);
        self
    }

    /// One more path at the root.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Paths at the root at which the format's clients exchange an identity that their build service vouches for, as
    /// `/_/oidc/{rest..}`. The host answers there.
    pub fn trusted_publishing(mut self, paths: &[&str]) -> Self {
        let declared = self.trusted_publishing.get_or_insert_default();
        declared.paths.extend(owned(paths));
        self
    }

    /// One request by which the format's clients exchange an ID token for a token of the host's.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.trusted_publishing.get_or_insert_default().exchanges.push(exchange);
        self
    }

    /// All requests below a repository's address that are open to anybody ([`Plan::open`](crate::Plan::open)): a method and a
    /// pattern of the router's, as `POST /-/v1/login`. To somebody who may not know which repositories there are, the host
    /// offers these at every name, so that the offer tells nothing. Where nothing is said it asks the plugin each time, in its own
    /// repositories alone.
    pub fn open_requests(mut self, requests: &[&str]) -> Self {
        self.open_requests = Some(owned(requests));
        self
    }

    /// One more setting, by its name in `snake_case`.
    pub fn setting(mut self, name: impl Into<String>, setting: Setting) -> Self {
        self.settings.insert(name.into(), setting);
        self
    }

    /// The largest file it takes, in bytes; the operator's configuration may say less. The host holds no body to be larger, unless
    /// [`max_body_bytes`](Self::max_body_bytes) says that a file is not all of one.
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_file_bytes = Some(bytes);
        self
    }

    /// The largest body it takes, in bytes, where a file is a part of it (a form) or is encoded (base64). The plugin then compares
    /// the file itself with the setting `max_file_bytes`, which says what the operator allows.
    pub fn max_body_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_body_bytes = Some(bytes);
        self
    }

    /// The largest manifest it takes, in bytes; the operator's configuration may say less. A whole body of which an intent wants no
    /// more than that is a manifest to the host.
    pub fn max_manifest_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_manifest_bytes = Some(bytes);
        self
    }

    /// A limit that an intent may [name](crate::Intent::under), in place of that of a file.
    pub fn limit(mut self, name: impl Into<String>, max_bytes: u64) -> Self {
        self.limits.named.insert(name.into(), NamedLimit { max_bytes, excess: None });
        self
    }

    /// The same, where what is over it is refused in these words.
    pub fn limit_with(mut self, name: impl Into<String>, max_bytes: u64, excess: RefusalWords) -> Self {
        self.limits.named.insert(name.into(), NamedLimit { max_bytes, excess: Some(excess) });
        self
    }

    /// The paths at the root that it claims.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The object that the host reads.
    pub fn to_json(&self) -> String {
        // A struct of strings and numbers always can be written; the host says so of an empty text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
