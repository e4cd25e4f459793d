//! Why the store could not do what it was asked.

use std::error::Error;

/// A failure of the store, as opposed to an outcome such as a stale commit, which is a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database or the storage of blobs did not answer, or answered with a failure of its own. The caller may try again.
    #[error("{what} is unavailable: {source}")]
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
    /// Bytes that were still arriving did not come to their end, or were not what they had to be. Says why.
    #[error("the bytes broke off: {0}")]
    BrokenOff(String),
    /// The arguments make no sense, or the configuration does not. Says what to do instead.
    #[error("{0}")]
    Invalid(String),
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

    /// Whether trying again later may help.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. } | StoreError::Unreadable(_))
    }
}
