//! What a call is refused with, and its shape on the wire: `{error, message, request_id}`, with `code` beside it where
//! the catalogue says so.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};
use packhouse_store::{Part, Store, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use packhouse_wire::catalogue::{self, Code, Place};

/// Why a call has no answer of its own. What went wrong inside is for the log and never in the answer.
#[derive(Debug)]
pub enum ApiError {
    /// A row of the catalogue, with the sentence filled in.
    Refused {
        /// The row.
        code: &'static Code,
        /// What a person reads.
        message: String,
        /// Seconds for `Retry-After`, where the row itself has none.
        retry_after: Option<u64>,
    },
    /// Something failed here.
    Internal(anyhow::Error),
}

impl ApiError {
    /// A row whose sentence has a place for what was found.
    pub fn with(code: &'static Code, found: &str) -> ApiError {
        ApiError::Refused { code, message: code.with(found), retry_after: None }
    }

    /// 400 `invalid_request` with a sentence of its own.
    pub fn invalid(sentence: &str) -> ApiError {
        ApiError::with(&catalogue::INVALID_REQUEST, sentence)
    }

    /// 429, to be tried again after so many seconds.
    pub fn too_many(seconds: u64) -> ApiError {
        let code = &catalogue::TOO_MANY_ATTEMPTS;
        ApiError::Refused { code, message: code.sentence.to_owned(), retry_after: Some(seconds.max(1)) }
    }

    /// Where the store was unavailable: which part of it, if it is one alone. Asked of the store only then.
    pub(super) async fn naming_the_part(self, store: &Store) -> ApiError {
        match &self {
            ApiError::Refused { code, .. } if std::ptr::eq(*code, &catalogue::DDB_UNAVAILABLE) => {}
            _ => return self,
        }
        match store.unreadable().await {
            Some(Part::Members) => ApiError::from(&catalogue::MEMBERSHIP_LOOKUP_UNAVAILABLE),
            Some(Part::SignInSettings) => ApiError::from(&catalogue::SSO_CONFIG_UNAVAILABLE),
            None => self,
        }
    }

    /// The row; none where something failed here.
    pub fn code(&self) -> Option<&'static Code> {
        match self {
            ApiError::Refused { code, .. } => Some(code),
            ApiError::Internal(_) => None,
        }
    }

    /// The same for a command's last word.
    pub fn for_command(self) -> anyhow::Error {
        match self {
            ApiError::Refused { message, .. } => anyhow::anyhow!(message),
            ApiError::Internal(error) => error,
        }
    }

    /// The answer, under this request's id.
    pub fn into_answer(self, request_id: &str) -> Response {
        let (code, message, retry_after) = match self {
            ApiError::Refused { code, message, retry_after } => (code, message, retry_after),
            ApiError::Internal(error) => {
                tracing::error!(request.id = request_id, error = %format!("{error:#}"), "a call failed");
                (&catalogue::INTERNAL, catalogue::INTERNAL.sentence.to_owned(), None)
            }
        };
        let body = ErrorBody {
            error: code.code.to_owned(),
            message,
            request_id: request_id.to_owned(),
            code: (code.place == Place::Code).then(|| code.code.to_owned()),
        };
        let status = StatusCode::from_u16(code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = (status, Json(body)).into_response();
        if let Some(seconds) = retry_after.or(code.retry_after().map(u64::from)) {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        name_request(&mut answer, request_id);
        answer
    }
}

/// Puts the request's id into its answer.
pub(super) fn name_request(answer: &mut Response, request_id: &str) {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        answer.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
}

impl From<&'static Code> for ApiError {
    fn from(code: &'static Code) -> ApiError {
        ApiError::Refused { code, message: code.sentence.to_owned(), retry_after: None }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        if error.is_out_of_descriptors() {
            tracing::error!(%error, "no more files can be opened");
            return ApiError::from(&catalogue::SERVER_BUSY);
        }
        if error.is_unavailable() {
            tracing::error!(%error, "the store is unavailable");
            return ApiError::from(&catalogue::DDB_UNAVAILABLE);
        }
        ApiError::Internal(error.into())
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> ApiError {
        ApiError::Internal(error)
    }
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The code.
    error: String,
    /// What a person reads.
    message: String,
    /// Names this request in the server's log.
    request_id: String,
    /// The code again, where the specification has it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// A path that is not there.
pub async fn no_such_path() -> Response {
    ApiError::from(&catalogue::NOT_FOUND).into_answer(&packhouse_wire::request_id::next())
}

/// A method that the path does not have; the router adds `Allow`.
pub async fn no_such_method() -> Response {
    ApiError::from(&catalogue::METHOD_NOT_ALLOWED).into_answer(&packhouse_wire::request_id::next())
}
