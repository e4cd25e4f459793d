//! Description of a format: a JSON object, so that fields can be added later.
//! docs/plugins/description.md lists the fields.

use crate::description_parts::{
    Limits, NamedLimit, Purl, SentenceClient, SentencePlace, Setting, TagKeys, TokenService,
    TrustedPublishing,
};
use crate::{Challenge, Client, CodeKind, ErrorTemplate, Exchange, Install, RefusalWords};
use packhouse_names::Folding;
use serde::Serialize;
use std::collections::BTreeMap;

/// Predefined layout of error responses. [`ErrorTemplate`] describes any other layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorStyle {
    /// One object with `error`, and `reason_code` or `code`.
    Plain,
    /// A list under `errors`, as in container registries.
    Registry,
}

/// Form of the `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Authorization {
    /// `Basic`, with a token or a member's password.
    Basic,
    /// `Bearer`, with a token.
    Bearer,
    /// A token without a scheme.
    Bare,
}

/// Path at the root of the host that the format serves in addition to `/repositories/NAME/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Name that requests and rows use for the claim.
    pub name: String,
    /// Path, for example `/v2/`; `{repository}` stands for a repository's name. The request's path
    /// is the rest of the address after this path.
    pub path: String,
    /// Scope template of a bearer challenge, with `{repository}`, `{subject}` and `{action}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
}

impl Claim {
    /// Creates a claim of this path under this name.
    pub fn new(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), path: path.into(), challenge: None }
    }

    /// Sets the scope template of the bearer challenge.
    pub fn challenge(mut self, template: impl Into<String>) -> Self {
        self.challenge = Some(template.into());
        self
    }
}

/// Name and properties of a format. Each field has a default that suits a simple format.
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
    sentence_clients: Vec<SentenceClient>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unused_settings: Vec<String>,
    limits: Limits,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clients: Vec<Client>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    install: Vec<Install>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counted_files: Vec<String>,
}

impl Description {
    /// Creates the description of a format with this name (lower-case letters, digits and `-`) and
    /// plugin version. By default the format has only hosted repositories, `Basic` challenges and
    /// plain errors.
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
            unused_settings: Vec::new(),
            limits: Limits::default(),
            clients: Vec::new(),
            install: Vec::new(),
            counted_files: Vec::new(),
        }
    }

    /// Adds setup instructions for clients.
    pub fn clients(mut self, clients: impl IntoIterator<Item = Client>) -> Self {
        self.clients.extend(clients);
        self
    }

    /// Adds instructions for installing a version.
    pub fn install(mut self, install: impl IntoIterator<Item = Install>) -> Self {
        self.install.extend(install);
        self
    }

    /// Sets the paths of the files whose downloads the host counts as downloads of a version; `*`
    /// stands for any text. If a client downloads several files together, choose one of them. By
    /// default the host counts every file.
    pub fn counted_files(mut self, patterns: &[&str]) -> Self {
        self.counted_files = owned(patterns);
        self
    }

    /// Sets the kinds of repository: `hosted`, `proxy`, `group`.
    pub fn kinds(mut self, kinds: &[&str]) -> Self {
        self.kinds = owned(kinds);
        self
    }

    /// Sets a predefined layout of error responses.
    pub fn error_style(mut self, style: ErrorStyle) -> Self {
        self.error_style = style;
        self
    }

    /// Sets the template of error responses, including the host's own refusals. The template
    /// replaces the error style.
    pub fn errors(mut self, template: ErrorTemplate) -> Self {
        self.errors = Some(template);
        self
    }

    /// Puts the sentence of a refusal into the HTTP/1.1 reason phrase, for formats whose clients
    /// show nothing else. By default the reason phrase is that of RFC 9110.
    pub fn sentence_as_reason(mut self) -> Self {
        self.sentence_as_reason = true;
        self
    }

    /// Declares clients, by the start of their `User-Agent`, that show the sentence of a refusal
    /// only in this place. The host also recognises these clients in refusals that must not
    /// disclose the repository's format.
    pub fn sentence_clients(mut self, starts: &[&str], place: &SentencePlace) -> Self {
        let client = |start: &&str| SentenceClient { user_agent: (*start).to_owned(), place: place.clone() };
        self.sentence_clients.extend(starts.iter().map(client));
        self
    }

    /// Sets the kind of a code that the format defines itself. Error responses with this code then
    /// have the [members](ErrorTemplate::members) of that kind, like the host's codes. The default
    /// is [`CodeKind::Own`].
    pub fn own_code(mut self, code: impl Into<String>, kind: CodeKind) -> Self {
        self.own_codes.insert(code.into(), kind);
        self
    }

    /// Sets the OSV ecosystem of the packages, for example `npm` or `PyPI`. Advisories for that
    /// ecosystem then apply to packages of this format. There is no default.
    pub fn ecosystem(mut self, name: impl Into<String>) -> Self {
        self.ecosystem = name.into();
        self
    }

    /// Sets the type of package URLs (purl), and the text between namespace and name in a package's
    /// own name. There is no default.
    pub fn purl(mut self, kind: &'static str, joint: &'static str) -> Self {
        self.purl = Some(Purl { kind, joint });
        self
    }

    /// Sets the challenge of a 401.
    pub fn challenge(mut self, challenge: Challenge) -> Self {
        self.challenge = challenge;
        self
    }

    /// Sets the accepted forms of `Authorization`. The default is `Basic` and `Bearer`.
    pub fn authorization(mut self, forms: &[Authorization]) -> Self {
        self.authorization = forms.to_vec();
        self
    }

    /// Sets user names that are accepted with any token, if the format
    /// [checks](Self::checks_username) user names. The default is `__token__`.
    pub fn token_usernames(mut self, names: &[&str]) -> Self {
        self.token_usernames = owned(names);
        self
    }

    /// Requires clients to send a token with the user name of the token's owner.
    pub fn checks_username(mut self) -> Self {
        self.checks_username = true;
        self
    }

    /// Sets the status for an invalid credential, when reading and when writing. Both are 401 by
    /// default.
    pub fn refused_status(mut self, read: u16, write: u16) -> Self {
        (self.refused_read_status, self.refused_write_status) = (read, write);
        self
    }

    /// Sets the status for a repository that the credential may not access. The default is 403.
    pub fn not_reached_status(mut self, status: u16) -> Self {
        self.not_reached_status = status;
        self
    }

    /// Sets the token formats that repositories of this format accept. The default is the format's
    /// own name.
    pub fn token_formats(mut self, formats: &[&str]) -> Self {
        self.token_formats = owned(formats);
        self
    }

    /// Lets people create tokens of this format; the name of the format becomes a token format.
    pub fn own_tokens(mut self) -> Self {
        self.own_tokens = true;
        self
    }

    /// Sets the kinds of credential that a proxy's upstream may need: `basic`, `bearer`. By default
    /// the upstream needs no credential.
    pub fn upstream_credentials(mut self, kinds: &[&str]) -> Self {
        self.upstream_credentials = owned(kinds);
        self
    }

    /// Allows `%2F` within a path segment.
    pub fn encoded_slash(mut self) -> Self {
        self.encoded_slash = true;
        self
    }

    /// Declares that clients follow a redirect when they download a stored file, and verify its
    /// digest themselves. Operators may then let clients download large files directly from S3; the
    /// server cannot verify those transfers.
    pub fn follows_redirects(mut self) -> Self {
        self.follows_redirects = true;
        self
    }

    /// Makes the age of an upstream's version begin at the `Last-Modified` of its files, for
    /// upstreams whose version lists state no times. The host then decides for each file
    /// ([`FileDecides`](crate::ReleaseVerdict::FileDecides)). By default, the age of a version
    /// without a stated time begins when the server first saw it in a list.
    pub fn file_dates(mut self) -> Self {
        self.file_dates = true;
        self
    }

    /// Sets which spellings of a name are equal in the format. The host compares the patterns in
    /// settings accordingly. By default each spelling is a separate name.
    pub fn name_folding(mut self, folding: Folding) -> Self {
        self.name_folding = folding;
        self
    }

    /// Adds a prefix of record keys that mark a package as held, with `{name}` for the package. A
    /// hosted repository holds a package while a version of it is listed, or while a record with
    /// such a key exists. Use such a prefix if the format stores parts of a package that it does
    /// not list.
    pub fn held_by(mut self, prefix: impl Into<String>) -> Self {
        self.held_by.push(prefix.into());
        self
    }

    /// Declares records that hold all tags of a package. The key is this prefix followed by the
    /// package. The record is a JSON object, and its member `member` maps each tag to what the tag
    /// names. The host then notifies webhooks when a tag moves.
    pub fn tags_of_package(mut self, prefix: impl Into<String>, member: impl Into<String>) -> Self {
        self.tags.push(TagKeys { prefix: prefix.into(), separator: None, member: member.into() });
        self
    }

    /// Declares that each tag has its own record. `separator` stands in the key between the package
    /// and the tag, and the member `member` of the record holds what the tag names.
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

    /// Sets further request headers that the plugin reads, in lower case, besides `accept` and
    /// `content-*`.
    pub fn request_headers(mut self, names: &[&str]) -> Self {
        self.request_headers = owned(names);
        self
    }

    /// Sets the endpoint where the host issues bearer tokens; bearer challenges need such an
    /// endpoint.
    pub fn token_service(mut self, service: TokenService) -> Self {
        self.token_service = Some(service);
        self
    }

    /// Adds a path at the root.
    pub fn claim(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// Adds paths at the root, for example `/_/oidc/{rest..}`, at which clients exchange an ID
    /// token of their build service. The host answers there.
    pub fn trusted_publishing(mut self, paths: &[&str]) -> Self {
        let declared = self.trusted_publishing.get_or_insert_default();
        declared.paths.extend(owned(paths));
        self
    }

    /// Adds a request by which clients exchange an ID token for a token of the host.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.trusted_publishing.get_or_insert_default().exchanges.push(exchange);
        self
    }

    /// Lists all requests below a repository's address that need no credential
    /// ([`Plan::open`](crate::Plan::open)). Each is a method and a router pattern, for example
    /// `POST /-/v1/login`. The host accepts them at any repository name, so that an
    /// unauthenticated caller cannot learn which repositories exist. Without this list, the host
    /// asks the plugin each time, and only for repositories of this format.
    pub fn open_requests(mut self, requests: &[&str]) -> Self {
        self.open_requests = Some(owned(requests));
        self
    }

    /// Adds a setting, named in `snake_case`.
    pub fn setting(mut self, name: impl Into<String>, setting: Setting) -> Self {
        self.settings.insert(name.into(), setting);
        self
    }

    /// Names settings that repositories of every format have and that the plugin never reads, for
    /// example `keep_untagged`. The portal then leaves them out.
    pub fn unused_settings(mut self, names: &[&str]) -> Self {
        self.unused_settings = owned(names);
        self
    }

    /// Sets the largest accepted file in bytes; the operator's configuration may lower it. The
    /// limit also applies to the whole body, unless [`max_body_bytes`](Self::max_body_bytes) is
    /// set.
    pub fn max_file_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_file_bytes = Some(bytes);
        self
    }

    /// Sets the largest accepted body in bytes, for bodies that contain a file in a form or encoded
    /// (base64). The plugin must then compare the file itself with the setting `max_file_bytes`,
    /// which includes the operator's limit.
    pub fn max_body_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_body_bytes = Some(bytes);
        self
    }

    /// Sets the largest accepted manifest in bytes; the operator's configuration may lower it. The
    /// host treats a body as a manifest if the limit of its intent is at most this.
    pub fn max_manifest_bytes(mut self, bytes: u64) -> Self {
        self.limits.max_manifest_bytes = Some(bytes);
        self
    }

    /// Adds a limit that an intent may [name](crate::Intent::under) instead of the limit of a file.
    pub fn limit(mut self, name: impl Into<String>, max_bytes: u64) -> Self {
        self.limits.named.insert(name.into(), NamedLimit { max_bytes, excess: None });
        self
    }

    /// Adds a named limit, with the words of the refusal of a larger body.
    pub fn limit_with(mut self, name: impl Into<String>, max_bytes: u64, excess: RefusalWords) -> Self {
        self.limits.named.insert(name.into(), NamedLimit { max_bytes, excess: Some(excess) });
        self
    }

    /// Returns the claimed paths at the root.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Returns the JSON object that the host reads.
    pub fn to_json(&self) -> String {
        // Serializing strings and numbers cannot fail. The host would reject an empty text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
