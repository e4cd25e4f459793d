//! Error responses. The format's template defines the body (`error_body`), and the format's
//! description the challenge. The reason phrase of HTTP/1.1 is that of RFC 9110, except for clients
//! that show users nothing but the reason phrase (`error_sentence`).

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use packhouse_runtime::{CallError, ChallengeScheme, ErrorTemplate, Failure, Problem, fill};
use packhouse_store::{DatabasePart, StoreError};
use serde_json::Value;

use crate::bearer_scope::BearerScope;
use crate::error_body::{self, RefusalFacts, WrittenError};
use crate::error_sentence::ErrorReader;
use packhouse_app::publishers::IdTokenRefusal;
use packhouse_identity::BearerError;
use packhouse_identity::access::Refusal;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue::{self, Code};
use packhouse_wire::incoming_body::BodyError;

/// The error of a request, which every step of the request path may return.
#[derive(Debug)]
pub(crate) struct HttpError {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    problems: Vec<Problem>,
    /// Row of the error catalogue; `None` for a plugin's own code.
    row: Option<&'static Code>,
    /// Name of the refusal if it has one that is more specific than the row's name. A format may
    /// define words for it.
    reason: Option<Cow<'static, str>>,
    /// True if the refusal says that the credential is not accepted or not sufficient.
    of_credential: bool,
    /// Scope and error for a bearer challenge: the scope that the request requires, and the error
    /// of the presented credential.
    scope: Option<String>,
    challenge_error: ChallengeError,
    /// True if a concurrent change may have caused the error, as in [`Failure::torn`].
    torn: bool,
}

/// The error of a credential in a bearer challenge (RFC 6750, section 3.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ChallengeError {
    /// The presented credential has no error that a bearer challenge can name.
    #[default]
    Nothing,
    /// The bearer token is not accepted.
    InvalidToken,
    /// The bearer token does not cover this request.
    InsufficientScope,
}

impl ChallengeError {
    /// Returns the error for a credential of this scope. `as_bearer` is true if the client sent the
    /// credential itself as a bearer token. `scope` is true if the credential lacks the required
    /// scope.
    pub(crate) fn of(bearer_scope: &BearerScope, as_bearer: bool, scope: bool) -> Self {
        match (bearer_scope, scope) {
            (BearerScope::Direct, _) if !as_bearer => Self::Nothing,
            (BearerScope::Direct, _) => Self::InvalidToken,
            (_, true) => Self::InsufficientScope,
            (_, false) => Self::InvalidToken,
        }
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::InvalidToken => Some("invalid_token"),
            Self::InsufficientScope => Some("insufficient_scope"),
        }
    }
}

impl HttpError {
    /// Creates the refusal for a row of the error catalogue.
    pub(crate) fn of(row: &'static Code) -> Self {
        Self::with_sentence(row, row.sentence.to_owned())
    }

    /// Creates the refusal for a row of the error catalogue, with `found` inserted into the
    /// message.
    pub(crate) fn with(row: &'static Code, found: &str) -> Self {
        Self::with_sentence(row, row.with(found))
    }

    fn with_sentence(row: &'static Code, message: String) -> Self {
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
            challenge_error: ChallengeError::Nothing,
            torn: false,
        }
    }

    /// Reports whether an immediate retry may succeed, because a concurrent change may have caused
    /// the error.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }

    /// Logs the codes for plugin authors, before the format's words replace the codes. Does not log
    /// the messages, because they may contain parts of the request.
    pub(crate) fn log_codes(&self, request_id: &str) {
        for problem in &self.problems {
            tracing::debug!(target: "packhouse::refusal", request_id, code = problem.code, "refused");
        }
    }

    /// Reports whether this is the refusal for the given row of the error catalogue.
    pub(crate) fn is_of(&self, row: &'static Code) -> bool {
        self.row.is_some_and(|own| std::ptr::eq(own, row))
    }

    /// Replaces the message that comes from the error catalogue.
    pub(crate) fn with_message(mut self, sentence: &str) -> Self {
        if let Some(problem) = self.problems.first_mut() {
            sentence.clone_into(&mut problem.message);
        }
        self
    }

    /// Sets a name that is more specific than the row's name. A format may define words for it.
    pub(crate) fn with_reason(mut self, reason: String) -> Self {
        self.reason = Some(Cow::Owned(reason));
        self
    }

    /// Sets the scope and the error for a bearer challenge, in case the response contains a bearer
    /// challenge.
    pub(crate) fn with_challenge(mut self, scope: Option<String>, challenge_error: ChallengeError) -> Self {
        (self.scope, self.challenge_error) = (scope, challenge_error);
        self
    }

    /// Reports whether the request is malformed (400), as opposed to valid but not successful.
    pub(crate) fn is_malformed(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// Sets a header, and replaces any header of the same name.
    pub(crate) fn and_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
        self
    }

    /// Marks this as the refusal of a credential. The audit log counts such refusals.
    pub(crate) fn of_credential(self) -> Self {
        Self { of_credential: true, ..self }
    }

    /// Returns the code of a credential's refusal, or `None` for other refusals.
    pub(crate) fn credential_code(&self) -> Option<&'static str> {
        self.row.filter(|_| self.of_credential).map(|row| row.code)
    }

    /// Creates a 405 with the allowed methods.
    pub(crate) fn method_not_allowed(allowed: &'static str) -> Self {
        Self::of(&catalogue::METHOD_NOT_ALLOWED).and_header(ALLOW, HeaderValue::from_static(allowed))
    }
}

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        let mut refused = Self::with_sentence(refusal.code, refusal.sentence);
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
        let (scope, challenge_error) = (None, ChallengeError::Nothing);
        let (reason, of_credential) = (None, false);
        Self {
            status: status(number),
            headers,
            problems,
            row,
            reason,
            of_credential,
            scope,
            challenge_error,
            torn,
        }
    }
}

impl From<BodyError> for HttpError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::BrokenOff => Self::of(&catalogue::REQUEST_TIMEOUT),
            BodyError::Malformed => {
                Self::with(&catalogue::INVALID_REQUEST, "The request body is not framed as HTTP requires.")
            }
        }
    }
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreadable(part) => {
                tracing::error!(%error, "cannot read a part of the store");
                Self::of(match part {
                    DatabasePart::Members => &catalogue::REPOSITORY_TOKEN_IDENTITY_UNAVAILABLE,
                    DatabasePart::SignInSettings => &catalogue::SSO_CONFIG_UNAVAILABLE,
                })
            }
            StoreError::Unavailable { .. } if error.is_out_of_descriptors() => {
                tracing::error!(%error, "too many open files");
                Self::of(&catalogue::SERVER_BUSY)
            }
            StoreError::Unavailable { .. } => {
                tracing::error!(%error, "store unavailable");
                Self::of(&catalogue::DDB_UNAVAILABLE)
            }
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "stored data is missing or damaged");
                Self::of(&catalogue::STORED_DATA_DAMAGED)
            }
            StoreError::TooLarge { limit, .. } => Self::with(&catalogue::FILE_TOO_LARGE, &limit.to_string()),
            StoreError::NoRoom { .. } => {
                tracing::warn!(%error, "upload refused: staging is full");
                Self::of(&catalogue::STAGING_FULL)
            }
            StoreError::QuotaExceeded { quota } => Self::with(&catalogue::QUOTA_EXCEEDED, &quota.sentence()),
            StoreError::BrokenOff(ref why) => {
                tracing::warn!(%error, "upstream response interrupted");
                Self::of(&catalogue::UPSTREAM_UNAVAILABLE)
                    .with_message(&format!("The upstream repository did not send a usable response: {why}"))
            }
            _ => {
                tracing::error!(%error, "store request failed");
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
                tracing::error!(%error, "cannot issue or check bearer tokens");
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
            CallError::OtherPackage(refusal) => Self::from(refusal),
            CallError::PolicyDenied(sentence) => Self::with(&catalogue::POLICY_DENIED, &sentence),
            CallError::Advisory(sentence) => Self::with(&catalogue::ADVISORY_MALWARE, &sentence),
            _ => Self::of(&catalogue::INTERNAL),
        }
    }
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

/// Facts on which the error response depends, in addition to the error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorContext<'a> {
    /// Template of the request's format, or the default template if the format is not known yet.
    pub template: &'a ErrorTemplate,
    /// Scheme of the challenge in a 401.
    pub challenge: &'a ChallengeScheme,
    /// Addresses that parameters of the challenge may contain.
    pub addresses: Addresses<'a>,
    pub request_id: &'a str,
    /// The client: where it shows the message, and which media types it accepts.
    pub reader: ErrorReader<'a>,
    /// True for a HEAD request.
    pub head: bool,
}

/// Addresses of the server that a challenge may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// Host name of the repository host.
    pub host: &'a str,
    pub base_url: &'a str,
    /// URL of the API and the portal.
    pub api_url: &'a str,
    /// URL of the token service, if the format has one.
    pub token_service: Option<&'a str>,
}

pub(crate) fn answer(refused: HttpError, error_context: ErrorContext<'_>) -> Response<Body> {
    let sentence = sentence(&refused);
    let facts = RefusalFacts {
        status: refused.status,
        problems: &refused.problems,
        row: refused.row,
        reason: refused.reason.as_deref(),
        sentence: &sentence,
        request_id: error_context.request_id,
    };
    let WrittenError { status, text } = error_body::write(error_context.template, &facts);
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
    // The only challenge comes from the host, because clients use the first challenge that they
    // understand.
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

/// Returns the challenge: the scheme, and each parameter that has a value.
fn challenge(refused: &HttpError, error_context: ErrorContext<'_>) -> String {
    let Addresses { host, base_url, api_url, token_service } = error_context.addresses;
    let found = |name: &str| match name {
        "host" => Some(host.into()),
        "base_url" => Some(base_url.into()),
        "api_url" => Some(api_url.into()),
        "token_service" => token_service.map(Value::from),
        "scope" => refused.scope.as_deref().map(Value::from),
        "error" => refused.challenge_error.word().map(Value::from),
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

/// Returns the message of the first problem, or the message of the row if the problem has none.
fn sentence(refused: &HttpError) -> String {
    let own =
        refused.problems.first().map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
    let row = refused.row.map(|row| row.sentence);
    own.or(row).or(refused.status.canonical_reason()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
