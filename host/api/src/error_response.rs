//! Rendered errors: `{error, message, request_id}`, and `code` where the catalogue says so.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use packhouse_wire::catalogue::{self, Code, Place};
use packhouse_wire::request_id;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::scim;

/// Refusal of a handler. `call::serve` renders it with the call's id.
#[derive(Clone)]
struct Raised(Arc<ApiError>);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut answer = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        answer.extensions_mut().insert(Raised(Arc::new(self)));
        answer
    }
}

/// Returns the refusal that a handler's response carries, otherwise the response.
pub(crate) fn raised(mut answer: Response) -> Result<Response, ApiError> {
    match answer.extensions_mut().remove::<Raised>() {
        None => Ok(answer),
        Some(Raised(error)) => {
            Err(Arc::into_inner(error).unwrap_or_else(|| ApiError::from(&catalogue::INTERNAL)))
        }
    }
}

impl ApiError {
    /// Renders the error with this request id.
    pub fn into_answer(self, request_id: &str) -> Response {
        self.into_answer_at("", request_id)
    }

    /// Renders the error with this request id, in the form that clients of this path read.
    pub fn into_answer_at(self, path: &str, request_id: &str) -> Response {
        let (code, message, retry_after) = match self {
            ApiError::Refused { code, message, retry_after } => (code, message, retry_after),
            ApiError::Internal(error) => {
                tracing::error!(request.id = request_id, error = %format!("{error:#}"), "api call failed");
                (&catalogue::INTERNAL, catalogue::INTERNAL.sentence.to_owned(), None)
            }
        };
        let body = ErrorBody {
            error: code.code.to_owned(),
            message: message.clone(),
            request_id: request_id.to_owned(),
            code: (code.place == Place::Code).then(|| code.code.to_owned()),
            error_description: OF_EXCHANGES.iter().any(|of| std::ptr::eq(*of, code)).then_some(message),
        };
        let status = StatusCode::from_u16(code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = if path.starts_with("/scim/") {
            scim::errors::response(status, code, body)
        } else {
            (status, Json(body)).into_response()
        };
        if let Some(seconds) = retry_after.or(code.retry_after().map(u64::from)) {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        name_request(&mut answer, request_id);
        answer
    }
}

/// Adds the request id to the response.
pub(crate) fn name_request(answer: &mut Response, request_id: &str) {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        answer.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The code.
    error: String,
    /// Message for people.
    pub(crate) message: String,
    /// Id of this request in the server's log.
    request_id: String,
    /// The code again, for errors where the specification has it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// The message again, in the field that OAuth defines; only if an ID token exchange is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_description: Option<String>,
}

/// Refusals that clients read in the form of RFC 6749.
static OF_EXCHANGES: [&Code; 4] = [
    &catalogue::EXCHANGE_MALFORMED,
    &catalogue::ID_TOKEN_REFUSED,
    &catalogue::INVALID_TARGET,
    &catalogue::UNSUPPORTED_GRANT_TYPE,
];

/// Response for an unknown path.
pub(crate) async fn no_such_path(uri: Uri) -> Response {
    ApiError::from(&catalogue::NOT_FOUND).into_answer_at(uri.path(), &request_id::next())
}

/// Response for a method that the path does not support; the router adds `Allow`.
pub(crate) async fn no_such_method(uri: Uri) -> Response {
    ApiError::from(&catalogue::METHOD_NOT_ALLOWED).into_answer_at(uri.path(), &request_id::next())
}
