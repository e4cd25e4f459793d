//! Errors of the store and their texts.

use std::error::Error;

use sqlx::error::DatabaseError;

/// A failure of the store. An outcome such as a stale commit is a value, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database or the blob storage did not answer, or failed. The caller may try again.
    #[error("{what} is unavailable: {}", causes(source.as_ref()))]
    Unavailable {
        /// Unavailable part, for the log: `the database`, `blob storage`.
        what: &'static str,
        source: Box<dyn Error + Send + Sync>,
    },
    /// One part of the database cannot be read, but the rest can. The caller may try again.
    #[error("{0} cannot be read")]
    Unreadable(DatabasePart),
    /// Stored data is damaged: a digest, a length or a row is wrong. The text says which.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The content is larger than the limit.
    #[error("{observed} bytes exceed the limit of {limit} bytes")]
    TooLarge {
        /// Maximum size of the content in bytes.
        limit: u64,
        /// Announced bytes, or those received before the transfer was stopped.
        observed: u64,
    },
    /// The staging area is at its limit, or the disk is nearly full. The caller may try again
    /// later.
    #[error("staging is full: the limit for {what} is {limit} bytes")]
    NoRoom {
        /// Name of the limit, for the log.
        what: &'static str,
        /// The limit that is exceeded, in bytes.
        limit: u64,
    },
    /// A publish would exceed the quota of a repository or of an organization's repositories
    /// together.
    #[error("{}", quota.sentence())]
    QuotaExceeded {
        /// The quota, and by how much it is exceeded.
        quota: ExceededQuota,
    },
    /// An incoming transfer ended early, or its bytes were wrong. The text says why.
    #[error("the transfer broke off: {0}")]
    BrokenOff(String),
    /// The arguments or the configuration are invalid. The text says what to do.
    #[error("{0}")]
    Invalid(String),
}

/// `EMFILE` and `ENFILE`. The numbers are the same on all supported systems.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    Repository,
    /// All repositories of an organization.
    Organization,
}

/// A quota that a publish would exceed. All numbers are bytes of files in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededQuota {
    pub of: QuotaOf,
    pub bytes: u64,
    /// Bytes that are used already.
    pub used: u64,
    /// Bytes that the publish would add.
    pub added: u64,
}

impl ExceededQuota {
    /// Message for the person who publishes.
    #[must_use]
    pub fn sentence(&self) -> String {
        let ExceededQuota { of, bytes, used, added } = self;
        let of = match of {
            QuotaOf::Repository => "this repository",
            QuotaOf::Organization => "the organization",
        };
        format!(
            "The quota of {of} is {bytes} bytes. {used} bytes are used, so {added} more do not fit. Delete \
             versions that are not needed, or ask for a larger quota."
        )
    }
}

/// A part of the database that may fail alone. The specification has a 503 response for each of
/// these parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabasePart {
    /// Members: the owners of tokens, and the members' list.
    Members,
    /// Sign-in settings of an organization.
    SignInSettings,
}

impl std::fmt::Display for DatabasePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DatabasePart::Members => "the table of members",
            DatabasePart::SignInSettings => "the table of sign-in settings",
        })
    }
}

impl StoreError {
    /// Wraps a failure of the database.
    pub(crate) fn database(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { what: "the database", source: source.into() }
    }

    /// Wraps a failure of the blob storage.
    pub(crate) fn storage(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { what: "blob storage", source: source.into() }
    }

    /// True if this process has reached its limit of open files and sockets (`EMFILE`, `ENFILE`).
    /// The database and the blob storage are available then. A retry can succeed once fewer files
    /// and sockets are open.
    #[must_use]
    pub fn is_out_of_descriptors(&self) -> bool {
        let StoreError::Unavailable { source, .. } = self else { return false };
        let mut cause: Option<&(dyn Error + 'static)> = Some(&**source);
        while let Some(error) = cause {
            let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
            if code.is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code)) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// Short reason without addresses, names or keys, for readers who may not see such details.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            StoreError::Unavailable { source, .. } => {
                let mut cause: &(dyn Error + 'static) = source.as_ref();
                while let Some(deeper) = denied(cause).is_none().then(|| cause.source()).flatten() {
                    cause = deeper;
                }
                denied(cause).map_or_else(|| plain(&words(cause)), str::to_owned)
            }
            StoreError::Unreadable(part) => format!("{part} cannot be read"),
            StoreError::Corrupt(_) => "stored data is damaged or missing".to_owned(),
            StoreError::TooLarge { .. }
            | StoreError::NoRoom { .. }
            | StoreError::BrokenOff(_)
            | StoreError::QuotaExceeded { .. }
            | StoreError::Invalid(_) => plain(&self.to_string()),
        }
    }

    /// True if a later retry may help.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. } | StoreError::Unreadable(_))
    }
}

/// An error with its causes, each stated once. Some errors repeat their cause's text and others do
/// not.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = words(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = words(cause);
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Text of an error. sqlx appends the position in PostgreSQL's source code to the message; this
/// function removes it.
fn words(error: &(dyn Error + 'static)) -> String {
    if let Some(sqlx::Error::Database(problem)) = error.downcast_ref::<sqlx::Error>() {
        return format!("error returned from database: {}", problem.message());
    }
    let problem = error.downcast_ref::<Box<dyn DatabaseError>>();
    problem.map_or_else(|| error.to_string(), |problem| problem.message().to_owned())
}

/// Replacement text for bucket errors whose own text contains details that clients should not see.
fn denied(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    match cause.downcast_ref::<object_store::Error>()? {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            Some("S3 refuses the credentials")
        }
        object_store::Error::NotFound { .. } => Some("S3 does not have this bucket"),
        _ => None,
    }
}

/// First line of a text, up to the first `<`, shortened to 160 characters.
fn plain(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split('<').next().unwrap_or_default();
    let sentence: String = line.chars().take(160).collect();
    sentence.trim_end_matches([' ', ':']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_differ_from_an_unavailable_storage() {
        let of = |number| StoreError::storage(std::io::Error::from_raw_os_error(number));
        assert!(of(24).is_out_of_descriptors() && of(23).is_out_of_descriptors());
        assert!(!of(5).is_out_of_descriptors());
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer: {source}")]
    struct Repeats {
        source: std::io::Error,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the middle")]
    struct LeavesOut(#[source] Repeats);

    #[test]
    fn each_cause_is_stated_once() {
        let error = LeavesOut(Repeats { source: std::io::Error::other("no route") });
        assert_eq!(causes(&error), "the middle: outer: no route");
        assert_eq!(
            StoreError::storage(error).to_string(),
            "blob storage is unavailable: the middle: outer: no route"
        );
    }

    #[test]
    fn a_reason_is_the_root_and_holds_no_document() {
        let error =
            LeavesOut(Repeats { source: std::io::Error::other("500: <Error><Key>AKIA</Key></Error>") });
        assert_eq!(StoreError::storage(error).reason(), "500");
        let refused =
            object_store::Error::PermissionDenied { path: "bucket/x".into(), source: "AKIA".into() };
        assert_eq!(StoreError::storage(refused).reason(), "S3 refuses the credentials");
    }
}
