//! Why an operation was refused, or failed: a row of the catalogue with its sentence. What it looks like on the wire is in
//! `error_response`.

use packhouse_store::{Part, Store, StoreError};
use packhouse_wire::catalogue::{self, Code};

/// Why there is no result. What went wrong inside is for the log and never in an answer.
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

    /// The refusal with this code of the catalogue, whose sentence is this one; it begins with a capital letter.
    pub fn sentence(code: &'static Code, words: &str) -> ApiError {
        let mut letters = words.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        ApiError::with(code, &first.chain(letters).collect::<String>())
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

    /// 429, as more requests came than may, to be tried again after so many seconds.
    pub fn rate_limited(seconds: u64) -> ApiError {
        let code = &catalogue::RATE_LIMITED;
        ApiError::Refused { code, message: code.sentence.to_owned(), retry_after: Some(seconds) }
    }

    /// Where the store was unavailable: which part of it, if it is one alone. Asked of the store only then.
    pub async fn naming_the_part(self, store: &Store) -> ApiError {
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

    /// What a person reads.
    pub fn message(&self) -> &str {
        match self {
            ApiError::Refused { message, .. } => message,
            ApiError::Internal(_) => catalogue::INTERNAL.sentence,
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
        if let StoreError::QuotaExceeded { quota } = &error {
            return ApiError::with(&catalogue::QUOTA_EXCEEDED, &quota.sentence());
        }
        if error.is_unavailable() {
            tracing::error!(%error, "the store is unavailable");
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
