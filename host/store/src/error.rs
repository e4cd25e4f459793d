//! Why the store could not do what it was asked.

use std::error::Error;

use sqlx::error::DatabaseError;

/// A failure of the store, as opposed to an outcome such as a stale commit, which is a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database or the storage of blobs did not answer, or answered with a failure of its own. The caller may try again.
    #[error("{what} is unavailable: {}", causes(source.as_ref()))]
    Unavailable {
        /// What was out of reach, for the log: `the database`, `blob storage`.
        what: &'static str,
        /// What it said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database answers, and all of it can be read but this part. The caller may try again.
    #[error("{0} cannot be read")]
    Unreadable(Part),
    /// What is stored is not what was stored: a digest, a length or a row that makes no sense. Says which.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// More bytes than the limit.
    #[error("{observed} bytes, where at most {limit} are allowed")]
    TooLarge {
        /// Bytes at most.
        limit: u64,
        /// How many were announced, or had come when they were given up.
        observed: u64,
    },
    /// More bytes are staged already than may be at one time, or the disk is nearly full. The caller may try again later.
    #[error("there is no room for more bytes that are not kept yet {what} ({limit} bytes)")]
    NoRoom {
        /// Of what, for the log.
        what: &'static str,
        /// The bound that was met, in bytes.
        limit: u64,
    },
    /// A commit that publishes would bring a repository, or an organization's repositories together, past its quota.
    #[error("{}", quota.sentence())]
    QuotaExceeded {
        /// Which, and by how much.
        quota: ExceededQuota,
    },
    /// Bytes that were still arriving did not come to their end, or were not what they had to be. Says why.
    #[error("the bytes broke off: {0}")]
    BrokenOff(String),
    /// The arguments make no sense, or the configuration does not. Says what to do instead.
    #[error("{0}")]
    Invalid(String),
}

/// `EMFILE` and `ENFILE`, by their numbers, which are the same wherever this runs.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];

/// What a quota is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    /// One repository.
    Repository,
    /// All repositories of an organization.
    Organization,
}

/// A quota that a publish would pass. All figures are bytes of files that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededQuota {
    /// What it is of.
    pub of: QuotaOf,
    /// The quota.
    pub bytes: u64,
    /// How many of it are used.
    pub used: u64,
    /// How many the publish would add.
    pub added: u64,
}

impl ExceededQuota {
    /// For whoever publishes.
    #[must_use]
    pub fn sentence(&self) -> String {
        let ExceededQuota { of, bytes, used, added } = self;
        let of = match of {
            QuotaOf::Repository => "this repository",
            QuotaOf::Organization => "the organization",
        };
        format!(
            "The quota of {of} is {bytes} bytes, of which {used} are used: {added} more do not fit. Delete what is not needed, or \
             have the quota raised."
        )
    }
}

/// A part of the database that may be out of reach alone, as the specification's 503 family tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Members: the owners of tokens, and the members' list.
    Members,
    /// How members of an organization sign in.
    SignInSettings,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Members => "the table of members",
            Part::SignInSettings => "the table of sign-in settings",
        })
    }
}

impl StoreError {
    /// The database did not do what it was asked.
    pub(crate) fn database(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { what: "the database", source: source.into() }
    }

    /// The storage of blobs did not do what it was asked.
    pub(crate) fn storage(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { what: "blob storage", source: source.into() }
    }

    /// Whether this process has as many files and sockets open as it may (`EMFILE`, `ENFILE`): neither the database nor the
    /// storage of blobs is away then, and trying again when less is under way helps.
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

    /// Why, in a few words that hold no address, no name and no key: for whoever may see no more than that.
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
            StoreError::Corrupt(_) => "what is stored is damaged or missing".to_owned(),
            StoreError::TooLarge { .. }
            | StoreError::NoRoom { .. }
            | StoreError::BrokenOff(_)
            | StoreError::QuotaExceeded { .. }
            | StoreError::Invalid(_) => plain(&self.to_string()),
        }
    }

    /// Whether trying again later may help.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. } | StoreError::Unreadable(_))
    }
}

/// An error with its causes, each said once: some errors have their cause's words in their own, others leave them out.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = words(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let said = words(cause);
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

/// What an error says of itself. sqlx ends PostgreSQL's words with a line of PostgreSQL's own source, which helps no operator.
fn words(error: &(dyn Error + 'static)) -> String {
    if let Some(sqlx::Error::Database(problem)) = error.downcast_ref::<sqlx::Error>() {
        return format!("error returned from database: {}", problem.message());
    }
    let problem = error.downcast_ref::<Box<dyn DatabaseError>>();
    problem.map_or_else(|| error.to_string(), |problem| problem.message().to_owned())
}

/// What a bucket answered, where its own words have more in them than others should see.
fn denied(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    match cause.downcast_ref::<object_store::Error>()? {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            Some("S3 refuses the credentials")
        }
        object_store::Error::NotFound { .. } => Some("S3 has no such bucket"),
        _ => None,
    }
}

/// The first line without what looks like a document, and not too long.
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
    fn too_many_open_files_are_told_from_a_storage_that_is_away() {
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
    fn each_cause_is_said_once() {
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
