//! The step that refuses a body by its declared length, before a byte of it; and the refusals of bodies that are too large.

use http::HeaderMap;
use packhouse_runtime::{BodyPlan, Intent, excess_of};
use packhouse_store::StoreError;
use packhouse_wire::catalogue;
use packhouse_wire::incoming_body::declared;

use crate::error_response::HttpError;

/// 413 for a body that is too large by its own declaration.
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

/// A refusal of what is over the intent's limit. If the limit has a name, the description may have words of its own for it.
pub(crate) fn of_limit(intent: &Intent, refused: HttpError) -> HttpError {
    match &intent.limit {
        Some(name) if refused.is_of(&catalogue::FILE_TOO_LARGE) => refused.because(excess_of(name)),
        _ => refused,
    }
}

/// 413 with the limit in its sentence.
pub(crate) fn too_large(limit: u64) -> HttpError {
    HttpError::with(&catalogue::FILE_TOO_LARGE, &limit.to_string())
}

/// A write's failure, where too many bytes are the client's fault.
pub(crate) fn refused_bytes(error: StoreError) -> HttpError {
    match error {
        StoreError::TooLarge { limit, .. } => too_large(limit),
        other => HttpError::from(other),
    }
}
