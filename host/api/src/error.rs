//! Errors of operations: an entry of the catalogue with its message, or an internal failure.
//! `error_response` renders them.

use packhouse_store::{DatabasePart, Store, StoreError};
use packhouse_wire::catalogue::{self, Code};

/// Error of an operation. Internal details go to the log, never into a response.
#[derive(Debug)]
pub enum ApiError {
    /// Refusal with an entry of the catalogue and its complete message.
    Refused {
        code: &'static Code,
        message: String,
        /// Seconds for `Retry-After`; `None` uses the entry's own value.
        retry_after: Option<u64>,
    },
    Internal(anyhow::Error),
}

impl ApiError {
    /// Refusal whose message has a placeholder for a detail.
    pub fn with(code: &'static Code, found: &str) -> ApiError {
        ApiError::Refused { code, message: code.with(found), retry_after: None }
    }

    /// Refusal with a message of its own, whose first letter becomes a capital.
    pub fn sentence(code: &'static Code, words: &str) -> ApiError {
        let mut letters = words.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        ApiError::with(code, &first.chain(letters).collect::<String>())
    }

    /// 400 `invalid_request` with a message of its own.
    pub fn invalid(sentence: &str) -> ApiError {
        ApiError::with(&catalogue::INVALID_REQUEST, sentence)
    }

    /// 429 `too_many_attempts`, with the seconds until the next attempt.
    pub fn too_many(seconds: u64) -> ApiError {
        let code = &catalogue::TOO_MANY_ATTEMPTS;
        ApiError::Refused { code, message: code.sentence.to_owned(), retry_after: Some(seconds.max(1)) }
    }

    /// 429 `rate_limited`, with the seconds until the next request.
    pub fn rate_limited(seconds: u64) -> ApiError {
        let code = &catalogue::RATE_LIMITED;
        ApiError::Refused { code, message: code.sentence.to_owned(), retry_after: Some(seconds) }
    }

    /// Names the unavailable part if only one part of the store is unavailable. Queries the store
    /// only in that case.
    pub async fn naming_the_part(self, store: &Store) -> ApiError {
        match &self {
            ApiError::Refused { code, .. } if std::ptr::eq(*code, &catalogue::DDB_UNAVAILABLE) => {}
            _ => return self,
        }
        match store.unreadable().await {
            Some(DatabasePart::Members) => ApiError::from(&catalogue::MEMBERSHIP_LOOKUP_UNAVAILABLE),
            Some(DatabasePart::SignInSettings) => ApiError::from(&catalogue::SSO_CONFIG_UNAVAILABLE),
            None => self,
        }
    }

    pub fn message(&self) -> &str {
        match self {
            ApiError::Refused { message, .. } => message,
            ApiError::Internal(_) => catalogue::INTERNAL.sentence,
        }
    }

    /// Entry of the catalogue; `None` for an internal failure.
    pub fn code(&self) -> Option<&'static Code> {
        match self {
            ApiError::Refused { code, .. } => Some(code),
            ApiError::Internal(_) => None,
        }
    }

    /// Error of a command, for the command line.
    pub fn for_command(self) -> anyhow::Error {
        match self {
            ApiError::Refused { message, .. } => anyhow::anyhow!(message),
            ApiError::Internal(error) => error,
        }
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
            tracing::error!(%error, "too many open files");
            return ApiError::from(&catalogue::SERVER_BUSY);
        }
        if let StoreError::QuotaExceeded { quota } = &error {
            return ApiError::with(&catalogue::QUOTA_EXCEEDED, &quota.sentence());
        }
        if error.is_unavailable() {
            tracing::error!(%error, "store unavailable");
            return ApiError::from(&catalogue::DDB_UNAVAILABLE);
        }
        if let StoreError::Corrupt(_) = &error {
            tracing::error!(%error, "stored data is missing or damaged");
            return ApiError::from(&catalogue::STORED_DATA_DAMAGED);
        }
        ApiError::Internal(error.into())
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> ApiError {
        ApiError::Internal(error)
    }
}
