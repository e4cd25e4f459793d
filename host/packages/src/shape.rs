//! Shape: what an error looks like on the wire. One object for every format, or `errors[]` where the format's description asks
//! for a registry's style; the sentence is the reason phrase of HTTP/1.1 too, since some clients show nothing else.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;
use packhouse_runtime::{CallError, ErrorStyle, Failure, Problem};
use packhouse_store::{Part, StoreError};
use serde_json::{Map, Value, json};

use crate::bearing::Bearing;
use packhouse_identity::BearerError;
use packhouse_identity::access::Refusal;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue::{self, Code, Place};
use packhouse_wire::incoming_body::BodyError;

/// A reason phrase is a line for people; longer ones are cut.
const REASON_BYTES: usize = 200;

/// Why a request gets an error: what every step of the data path may return instead of its result.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    problems: Vec<Problem>,
    /// The catalogue's row; none where a format's own code has none.
    row: Option<&'static Code>,
    /// The row in a registry's words, where the status alone does not tell it.
    in_registry: Option<&'static Code>,
    /// Whether it is a credential that is refused.
    of_credential: bool,
    /// What a bearer challenge adds: the scope that is needed, and what is wrong with the credential that came.
    scope: Option<String>,
    lacking: Lacking,
}

/// What is wrong with a credential, in the words of a bearer challenge (RFC 6750, section 3.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Lacking {
    /// Nothing that a bearer challenge has a word for.
    #[default]
    Nothing,
    /// A bearer came that is not taken.
    Token,
    /// A bearer came that was not given for this.
    Scope,
}

impl Lacking {
    /// For a credential that came like this, and that does or does not lack the scope.
    pub(crate) fn of(bearing: &Bearing, scope: bool) -> Self {
        match (bearing, scope) {
            (Bearing::Direct, _) => Self::Nothing,
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

impl Refused {
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
            in_registry: None,
            of_credential: false,
            scope: None,
            lacking: Lacking::Nothing,
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

    /// The same with the words that it has in a registry's answer.
    pub(crate) fn in_registry(mut self, row: &'static Code) -> Self {
        self.in_registry = Some(row);
        self
    }

    /// The same with what a bearer challenge says besides, should there be one.
    pub(crate) fn lacking(mut self, scope: Option<String>, lacking: Lacking) -> Self {
        (self.scope, self.lacking) = (scope, lacking);
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

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let mut refused = Self::saying(refusal.code, refusal.sentence);
        refused.status = status(refusal.status);
        refused.in_registry = refusal.in_registry;
        refused
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let code = failure.problems.first().map(|problem| problem.code.as_str());
        let row = catalogue::ALL.iter().copied().find(|row| Some(row.code) == code);
        let Failure { status: number, headers, problems } = failure;
        let (scope, lacking) = (None, Lacking::Nothing);
        let (in_registry, of_credential) = (None, false);
        Self { status: status(number), headers, problems, row, in_registry, of_credential, scope, lacking }
    }
}

impl From<BodyError> for Refused {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::BrokenOff => Self::of(&catalogue::REQUEST_TIMEOUT),
            BodyError::Malformed => {
                Self::with(&catalogue::INVALID_REQUEST, "The body is not framed as HTTP has it.")
            }
        }
    }
}

impl From<StoreError> for Refused {
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
            // Nothing is wrong with the request, and what is missing may be put back.
            StoreError::Corrupt(_) => {
                tracing::error!(%error, "what is stored cannot be served");
                Self::of(&catalogue::DDB_UNAVAILABLE)
            }
            StoreError::TooLarge { limit, .. } => Self::with(&catalogue::FILE_TOO_LARGE, &limit.to_string()),
            StoreError::NoRoom { .. } => {
                tracing::warn!(%error, "bytes are refused");
                Self::of(&catalogue::STAGING_FULL)
            }
            StoreError::BrokenOff(_) => {
                tracing::warn!(%error, "an upstream did not send what it began");
                Self::of(&catalogue::UPSTREAM_UNAVAILABLE)
            }
            _ => {
                tracing::error!(%error, "the store failed");
                Self::of(&catalogue::INTERNAL)
            }
        }
    }
}

impl From<BearerError> for Refused {
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

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Store(error) => Self::from(error),
            CallError::Busy(_) => Self::of(&catalogue::FORMAT_BUSY),
            CallError::TooMany { retry_after_s } => Self::of(&catalogue::TOO_MANY_ATTEMPTS)
                .and_header(RETRY_AFTER, HeaderValue::from(retry_after_s)),
            _ => Self::of(&catalogue::INTERNAL),
        }
    }
}

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// What the shape depends on besides the error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The format's style, where one is known by now.
    pub style: ErrorStyle,
    /// The realm of a challenge: the repository host's name.
    pub realm: &'a str,
    /// The address of the token service, where the challenge is a bearer's.
    pub token_service: Option<&'a str>,
    /// The request's id.
    pub request_id: &'a str,
    /// Whether the request is a HEAD.
    pub head: bool,
}

/// Makes the answer.
pub(crate) fn answer(refused: Refused, frame: Frame<'_>) -> Response<Body> {
    let sentence = sentence(&refused);
    let (status, object) = match frame.style {
        ErrorStyle::Plain => (refused.status, plain(&refused, &sentence, frame.request_id)),
        ErrorStyle::Registry => registry(&refused, &sentence, frame.request_id),
    };
    let bytes = Bytes::from(Value::Object(object).to_string());
    let mut headers = own_headers(&refused, frame);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut response = Response::new(if frame.head { Body::empty() } else { Body::full(bytes) });
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if let Some(reason) = reason(&sentence) {
        response.extensions_mut().insert(reason);
    }
    response
}

fn own_headers(refused: &Refused, frame: Frame<'_>) -> HeaderMap {
    let mut headers: HeaderMap = HeaderMap::new();
    for (name, value) in &refused.headers {
        headers.append(name, value.clone());
    }
    // One challenge, and the host's own: a client takes the first that it understands.
    headers.remove(WWW_AUTHENTICATE);
    if refused.status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_str(&challenge(refused, frame));
        headers.insert(
            WWW_AUTHENTICATE,
            challenge.unwrap_or(HeaderValue::from_static("Basic realm=\"packages\"")),
        );
    }
    headers
}

/// `Basic` with the host's name as realm; or `Bearer` with the token service's address, as registries' clients know it.
fn challenge(refused: &Refused, frame: Frame<'_>) -> String {
    let realm = frame.realm;
    let Some(service) = frame.token_service else { return format!("Basic realm=\"{realm}\"") };
    let mut challenge = format!("Bearer realm=\"{service}\",service=\"{realm}\"");
    let more = [("scope", refused.scope.as_deref()), ("error", refused.lacking.word())];
    for (name, value) in more.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        challenge.push_str(&format!(",{name}=\"{value}\""));
    }
    challenge
}

/// The first problem's words, or its row's where it has none.
fn sentence(refused: &Refused) -> String {
    let own =
        refused.problems.first().map(|problem| problem.message.as_str()).filter(|text| !text.is_empty());
    let row = refused.row.map(|row| row.sentence);
    own.or(row).or(refused.status.canonical_reason()).unwrap_or_default().to_owned()
}

fn plain(refused: &Refused, sentence: &str, request_id: &str) -> Map<String, Value> {
    let mut object = details(refused);
    let code = refused.problems.first().map_or("", |problem| problem.code.as_str());
    match refused.row.map_or(Place::Error, |row| row.place) {
        Place::Error | Place::Errors => insert(&mut object, "error", code),
        Place::Code => {
            insert(&mut object, "error", &code.to_lowercase());
            insert(&mut object, "code", code);
        }
        Place::Reason => {
            insert(&mut object, "error", sentence);
            insert(&mut object, "reason_code", code);
        }
    }
    insert(&mut object, "message", sentence);
    insert(&mut object, "request_id", request_id);
    insert(&mut object, "type", "about:blank");
    insert(&mut object, "title", refused.status.canonical_reason().unwrap_or("Error"));
    object.insert("status".to_owned(), json!(refused.status.as_u16()));
    insert(&mut object, "detail", sentence);
    object
}

fn insert(object: &mut Map<String, Value>, name: &str, value: &str) {
    object.insert(name.to_owned(), Value::String(value.to_owned()));
}

/// Further facts of a single problem, which stand at the top.
fn details(refused: &Refused) -> Map<String, Value> {
    match refused.problems.as_slice() {
        [Problem { detail: Some(Value::Object(object)), .. }] => object.clone(),
        _ => Map::new(),
    }
}

/// The status is the registry's own: it has other words and other numbers for some refusals.
fn registry(refused: &Refused, sentence: &str, request_id: &str) -> (StatusCode, Map<String, Value>) {
    let mut object = details(refused);
    let own = refused.row.is_none_or(|row| row.place == Place::Errors);
    let (code, errors) = match own {
        true => (refused.status, refused.problems.iter().map(registry_problem).collect()),
        false => match registry_row(refused) {
            Some(row) => (status(row.status), vec![json!({"code": row.code, "message": row.sentence})]),
            // What the transport refuses, before any protocol on it: registries have no words for that.
            None => {
                let code = refused.row.map_or("UNKNOWN", |row| row.code).to_uppercase();
                (refused.status, vec![json!({"code": code, "message": sentence})])
            }
        },
    };
    object.insert("errors".to_owned(), Value::Array(errors));
    match refused.row {
        Some(Code { place: Place::Code, code, .. }) => insert(&mut object, "code", code),
        Some(Code { place: Place::Reason, code, .. }) => insert(&mut object, "reason_code", code),
        // One answer for all of them in the protocol's own words: the code says which it was.
        Some(Code { status: 503, place: Place::Error, code, .. }) => insert(&mut object, "code", code),
        _ => (),
    }
    insert(&mut object, "request_id", request_id);
    (code, object)
}

fn registry_problem(problem: &Problem) -> Value {
    match &problem.detail {
        Some(detail) => json!({"code": problem.code, "message": problem.message, "detail": detail}),
        None => json!({"code": problem.code, "message": problem.message}),
    }
}

/// The rows of the host's own that registries tell apart although the status is the same, or that have another status there.
static REGISTRY_ROWS: &[(&Code, &Code)] = &[
    (&catalogue::WRITES_NOT_PERMITTED_ON_GROUP, &catalogue::REGISTRY_GROUP_WRITE),
    (&catalogue::GROUP_EMPTY, &catalogue::REGISTRY_GROUP_EMPTY),
    (&catalogue::NAME_CLAIMED, &catalogue::REGISTRY_MANIFEST_UNKNOWN),
    (&catalogue::NO_REPOSITORY_NAME, &catalogue::REGISTRY_NAME_REPOSITORY),
    (&catalogue::MALFORMED_ADDRESS, &catalogue::REGISTRY_NAME_PATH),
];

/// A refusal of the host's own in a registry's words.
fn registry_row(refused: &Refused) -> Option<&'static Code> {
    if refused.in_registry.is_some() {
        return refused.in_registry;
    }
    let own = |(row, _): &&(&Code, &Code)| refused.row.is_some_and(|refused| std::ptr::eq(refused, *row));
    if let Some((_, row)) = REGISTRY_ROWS.iter().find(own) {
        return Some(row);
    }
    Some(match refused.status.as_u16() {
        401 => &catalogue::REGISTRY_UNAUTHORIZED,
        403 => &catalogue::REGISTRY_DENIED,
        404 => &catalogue::REGISTRY_NAME_UNKNOWN,
        405 => &catalogue::REGISTRY_METHOD,
        413 => &catalogue::REGISTRY_SIZE_INVALID,
        429 => &catalogue::REGISTRY_TOO_MANY_REQUESTS,
        502 => &catalogue::REGISTRY_UPSTREAM,
        503 => &catalogue::REGISTRY_UNAVAILABLE,
        400..=499 => return None,
        _ => &catalogue::REGISTRY_UNKNOWN,
    })
}

/// The sentence on a status line: printable ASCII, one line.
fn reason(sentence: &str) -> Option<ReasonPhrase> {
    let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let line: String = sentence.chars().map(printable).take(REASON_BYTES).collect();
    ReasonPhrase::try_from(line).ok()
}

#[cfg(test)]
mod tests;
