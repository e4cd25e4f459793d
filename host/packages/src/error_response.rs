//! What an error looks like on the wire. Its body is written by the format's template (`error_body`), its challenge is the
//! format's. The reason phrase of HTTP/1.1 is the one of RFC 9110, but for clients that show nothing else (`error_sentence`).

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use packhouse_runtime::{CallError, ChallengeScheme, ErrorTemplate, Failure, Problem, fill};
use packhouse_store::{Part, StoreError};
use serde_json::Value;

use crate::bearer_scope::BearerScope;
use crate::error_body::{self, Said, Written};
use crate::error_sentence::ErrorReader;
use packhouse_app::publishers::IdTokenRefusal;
use packhouse_identity::BearerError;
use packhouse_identity::access::Refusal;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue::{self, Code};
use packhouse_wire::incoming_body::BodyError;

/// Why a request gets an error: what every step of the data path may return instead of its result.
#[derive(Debug)]
pub(crate) struct HttpError {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    problems: Vec<Problem>,
    /// The catalogue's row; none where a format's own code has none.
    row: Option<&'static Code>,
    /// Which refusal it is more exactly than its row says: a name by which a format may have words for it.
    reason: Option<Cow<'static, str>>,
    /// Whether it is a credential that is refused.
    of_credential: bool,
    /// What a bearer challenge adds: the scope that is needed, and what is wrong with the credential that came.
    scope: Option<String>,
    missing_scope: MissingScope,
    /// As in [`Failure::torn`].
    torn: bool,
}

/// What is wrong with a credential, in the words of a bearer challenge (RFC 6750, section 3.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum MissingScope {
    /// Nothing that a bearer challenge has a word for.
    #[default]
    Nothing,
    /// A bearer came that is not taken.
    Token,
    /// A bearer came that was not given for this.
    Scope,
}

impl MissingScope {
    /// For a credential that came like this, and that does or does not lack the scope. `as_bearer` says that a credential was sent as a
    /// bearer itself.
    pub(crate) fn of(bearer_scope: &BearerScope, as_bearer: bool, scope: bool) -> Self {
        match (bearer_scope, scope) {
            (BearerScope::Direct, _) if !as_bearer => Self::Nothing,
            (BearerScope::Direct, _) => Self::Token,
            (_, true) => Self::Scope,
            (_, false) => Self::Token,
        }
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Token => Some("invalid_token"),
            Self::Scope => Some("insufficient_scope"),
        }
    }
}

impl HttpError {
    /// As a row of the catalogue says.
    pub(crate) fn of(row: &'static Code) -> Self {
        Self::saying(row, row.sentence.to_owned())
    }

    /// As a row of the catalogue says, with what was found.
    pub(crate) fn with(row: &'static Code, found: &str) -> Self {
        Self::saying(row, row.with(found))
    }

    fn saying(row: &'static Code, message: String) -> Self {
        let problem = Problem { code: row.code.to_owned(), message, detail: None };
        let retry = row.retry_after().map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds)));
        Self {
            status: status(row.status),
            headers: retry.into_iter().collect(),
            problems: vec![problem],
            row: Some(row),
            reason: None,
            of_credential: false,
            scope: None,
            missing_scope: MissingScope::Nothing,
            torn: false,
        }
    }

    /// Whether the request may be answered otherwise when it is asked again at once.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }

    /// The codes as they are before the format's words take their place, for whoever writes a plugin. Not their sentences, in which
    /// anything of the request may stand.
    pub(crate) fn tell(&self, request_id: &str) {
        for problem in &self.problems {
            tracing::debug!(target: "packhouse::refusal", request_id, code = problem.code, "refused");
        }
    }

    /// Whether it is as this row of the catalogue says.
    pub(crate) fn is_of(&self, row: &'static Code) -> bool {
        self.row.is_some_and(|own| std::ptr::eq(own, row))
    }

    /// The same in other words than its row's.
    pub(crate) fn in_words(mut self, sentence: &str) -> Self {
        if let Some(problem) = self.problems.first_mut() {
            sentence.clone_into(&mut problem.message);
        }
        self
    }

    /// The same by a name that is more exact than its row's, for which a format may have words.
    pub(crate) fn because(mut self, reason: String) -> Self {
        self.reason = Some(Cow::Owned(reason));
        self
    }

    /// The same with what a bearer challenge says besides, should there be one.
    pub(crate) fn missing_scope(mut self, scope: Option<String>, missing_scope: MissingScope) -> Self {
        (self.scope, self.missing_scope) = (scope, missing_scope);
        self
    }

    /// Whether it says that the request makes no sense, rather than what became of it.
    pub(crate) fn is_malformed(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// The same with one more field, which replaces one of its name.
    pub(crate) fn and_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
        self
    }

    /// The same, as the refusal of a credential: it is counted in the audit log.
    pub(crate) fn of_credential(self) -> Self {
        Self { of_credential: true, ..self }
    }

    /// The code by which a credential is refused; none where something else is the reason.
    pub(crate) fn credential_code(&self) -> Option<&'static str> {
        self.row.filter(|_| self.of_credential).map(|row| row.code)
    }

    /// 405 with the methods that there are.
    pub(crate) fn method_not_allowed(allowed: &'static str) -> Self {
        Self::of(&catalogue::METHOD_NOT_ALLOWED).and_header(ALLOW, HeaderValue::from_static(allowed))
    }
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        let mut refused = Self::saying(refusal.code, refusal.sentence);
        refused.status = status(refusal.status);
        refused.reason = refusal.reason.map(Cow::Borrowed);
        refused
    }
}

impl From<Failure> for HttpError {
    fn from(failure: Failure) -> Self {
        let code = failure.problems.first().map(|problem| problem.code.as_str());
        let row = catalogue::ALL.iter().copied().find(|row| Some(row.code) == code);
        let Failure { status: number, headers, problems, torn } = failure;
        let (scope, missing_scope) = (None, MissingScope::Nothing);
        let (reason, of_credential) = (None, false);
        Self {
            status: status(number),
            headers,
            problems,
            row,
            reason,
            of_credential,
            scope,
            missing_scope,
            torn,
        }
    }
}

impl From<BodyError> for HttpError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::BrokenOff => Self::of(&catalogue::REQUEST_TIMEOUT),
            BodyError::Malformed => {
                Self::with(&catalogue::INVALID_REQUEST, "The body is not framed as HTTP has it.")
            }
        }
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreadable(part) => {
                tracing::error!(%error, "a part of the store cannot be read");
                Self::of(match part {
                    Part::Members => &catalogue::REPOSITORY_TOKEN_IDENTITY_UNAVAILABLE,
                    Part::SignInSettings => &catalogue::SSO_CONFIG_UNAVAILABLE,
                })
            }
            StoreError::Unavailable { .. } if error.is_out_of_descriptors() => {
                tracing::error!(%error, "no more files can be opened");
                Self::of(&catalogue::SERVER_BUSY)
            }
            StoreError::Unavailable { .. } => {
                tracing::error!(%error, "the store cannot be reached");
                Self::of(&catalogue::DDB_UNAVAILABLE)
            }
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "stored data is missing or damaged");
                Self::of(&catalogue::STORED_DATA_DAMAGED)
            }
            StoreError::TooLarge { limit, .. } => Self::with(&catalogue::FILE_TOO_LARGE, &limit.to_string()),
            StoreError::NoRoom { .. } => {
                tracing::warn!(%error, "bytes are refused");
                Self::of(&catalogue::STAGING_FULL)
            }
            StoreError::QuotaExceeded { quota } => Self::with(&catalogue::QUOTA_EXCEEDED, &quota.sentence()),
            StoreError::BrokenOff(ref why) => {
                tracing::warn!(%error, "an upstream did not send what it began");
                Self::of(&catalogue::UPSTREAM_UNAVAILABLE)
                    .in_words(&format!("The upstream repository gives no usable answer: {why}"))
            }
            _ => {
                tracing::error!(%error, "the store failed");
                Self::of(&catalogue::INTERNAL)
            }
        }
    }
}

impl From<BearerError> for HttpError {
    fn from(error: BearerError) -> Self {
        match error {
            BearerError::Store(error) => Self::from(error),
            BearerError::Key(error) => {
                tracing::error!(%error, "bearers can be neither given out nor checked");
                Self::of(&catalogue::INTERNAL)
            }
        }
    }
}

impl From<CallError> for HttpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Store(error) => Self::from(error),
            CallError::Busy(_) => Self::of(&catalogue::FORMAT_BUSY),
            CallError::TooMany { retry_after_s } => Self::of(&catalogue::TOO_MANY_ATTEMPTS)
                .and_header(RETRY_AFTER, HeaderValue::from(retry_after_s)),
            CallError::OtherPackage(package) => other_package(&[package]),
            CallError::PolicyDenied(sentence) => Self::with(&catalogue::POLICY_DENIED, &sentence),
            CallError::Advisory(sentence) => Self::with(&catalogue::ADVISORY_MALWARE, &sentence),
            _ => Self::of(&catalogue::INTERNAL),
        }
    }
}

/// 403 for a credential that does not reach these packages, or where none is named.
pub(crate) fn other_package(packages: &[String]) -> HttpError {
    let named: Vec<&str> = packages.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let about = match named.as_slice() {
        [] => "what is of no package that it reaches".to_owned(),
        named => format!("the package {}, which it does not reach", named.join(" or ")),
    };
    HttpError::with(&catalogue::PACKAGE_NOT_REACHED, &about).of_credential()
}

impl From<IdTokenRefusal> for HttpError {
    fn from(refused: IdTokenRefusal) -> Self {
        match refused {
            IdTokenRefusal::Store(error) => Self::from(error),
            refused => Self::with(&catalogue::INVALID_ID_TOKEN, &refused.to_string()).of_credential(),
        }
    }
}

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What the answer depends on besides the error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorContext<'a> {
    /// By what the body is written: the format's template, where one is known by now.
    pub template: &'a ErrorTemplate,
    /// What a 401 asks for.
    pub challenge: &'a ChallengeScheme,
    /// What its parameters may name.
    pub addresses: Addresses<'a>,
    /// The request's id.
    pub request_id: &'a str,
    /// What the client shows, and what it takes.
    pub reader: ErrorReader<'a>,
    /// Whether the request is a HEAD.
    pub head: bool,
}

/// What a challenge may name of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// The repository host's name.
    pub host: &'a str,
    /// The repository host's address.
    pub base_url: &'a str,
    /// The API's and the portal's.
    pub api_url: &'a str,
    /// The token service's, where the format has one.
    pub token_service: Option<&'a str>,
}

/// Makes the answer.
pub(crate) fn answer(refused: HttpError, error_context: ErrorContext<'_>) -> Response<Body> {
    let sentence = sentence(&refused);
    let said = Said {
        status: refused.status,
        problems: &refused.problems,
        row: refused.row,
        reason: refused.reason.as_deref(),
        sentence: &sentence,
        request_id: error_context.request_id,
    };
    let Written { status, text } = error_body::write(error_context.template, &said);
    let mut headers = own_headers(&refused, status, error_context);
    let is_plain_404 = refused.is_of(&catalogue::NOT_FOUND) && !refused.of_credential;
    let reader = error_context.reader;
    let reader = if is_plain_404 { reader.of_plain_404() } else { reader };
    let (text, content_type) = if reader.shows_body() {
        (format!("{sentence}\n"), "text/plain; charset=utf-8")
    } else {
        (text, reader.content_type(error_context.template))
    };
    let bytes = Bytes::from(text);
    let content_type = HeaderValue::from_str(content_type);
    headers.insert(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/json")));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(reader.header(&sentence));
    let mut response = Response::new(if error_context.head { Body::empty() } else { Body::full(bytes) });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if let Some(reason) = reader.reason(&sentence, status) {
        response.extensions_mut().insert(reason);
    }
    response
}

fn own_headers(refused: &HttpError, status: StatusCode, error_context: ErrorContext<'_>) -> HeaderMap {
    let mut headers: HeaderMap = HeaderMap::new();
    for (name, value) in &refused.headers {
        headers.append(name, value.clone());
    }
    // One challenge, and the host's own: a client takes the first that it understands.
    headers.remove(WWW_AUTHENTICATE);
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_str(&challenge(refused, error_context));
        headers.insert(
            WWW_AUTHENTICATE,
            challenge.unwrap_or(HeaderValue::from_static("Basic realm=\"packages\"")),
        );
    }
    headers
}

/// The scheme with those of its parameters that have a value.
fn challenge(refused: &HttpError, error_context: ErrorContext<'_>) -> String {
    let Addresses { host, base_url, api_url, token_service } = error_context.addresses;
    let found = |name: &str| match name {
        "host" => Some(host.into()),
        "base_url" => Some(base_url.into()),
        "api_url" => Some(api_url.into()),
        "token_service" => token_service.map(Value::from),
        "scope" => refused.scope.as_deref().map(Value::from),
        "error" => refused.missing_scope.word().map(Value::from),
        _ => None,
    };
    let parameters = error_context.challenge.parameters.iter().filter_map(|parameter| {
        let value = fill(&Value::String(parameter.value.clone()), &found)?;
        Some(format!("{}=\"{}\"", parameter.name, value.as_str()?))
    });
    let parameters: Vec<String> = parameters.collect();
    let gap = if parameters.is_empty() { "" } else { " " };
    format!("{}{gap}{}", error_context.challenge.scheme, parameters.join(","))
}

/// The first problem's words, or its row's where it has none.
fn sentence(refused: &HttpError) -> String {
    let own =
        refused.problems.first().map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
    let row = refused.row.map(|row| row.sentence);
    own.or(row).or(refused.status.canonical_reason()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
