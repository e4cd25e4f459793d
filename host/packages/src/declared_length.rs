//! The step that refuses a body by its declared length before the host reads it. Also the errors
//! for bodies that are too large.

use http::HeaderMap;
use packhouse_runtime::{BodyPlan, Intent, excess_of};
use packhouse_store::StoreError;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::declared;

use crate::error_response::HttpError;

/// Refuses a body whose declared length exceeds the limit, with 413.
pub(crate) fn refuse_by_declared_length(intent: &Intent, headers: &HeaderMap) -> Result<(), HttpError> {
    let limit = match intent.body {
        BodyPlan::None => return Ok(()),
        BodyPlan::Body { limit } | BodyPlan::Parts { limit } | BodyPlan::Append { limit, .. } => limit,
    };
    match declared(headers) {
        Some(length) if length > limit => Err(of_limit(intent, too_large(limit))),
        _ => Ok(()),
    }
}

/// Adds the name of the intent's limit to the refusal of a body that exceeds it. The format's
/// description may contain a message for a named limit.
pub(crate) fn of_limit(intent: &Intent, refused: HttpError) -> HttpError {
    match &intent.limit {
        Some(name) if refused.is_of(&catalogue::FILE_TOO_LARGE) => refused.with_reason(excess_of(name)),
        _ => refused,
    }
}

/// Returns the error 413 with the limit in its message.
pub(crate) fn too_large(limit: u64) -> HttpError {
    HttpError::with(&catalogue::FILE_TOO_LARGE, &limit.to_string())
}

/// Converts the error of a write. If there are too many bytes, the error blames the client: 413.
pub(crate) fn refused_bytes(error: StoreError) -> HttpError {
    match error {
        StoreError::TooLarge { limit, .. } => too_large(limit),
        other => HttpError::from(other),
    }
}
