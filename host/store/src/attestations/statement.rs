//! A signed statement as part of a commit, and its bounds.

use bytes::Bytes;

use crate::digest::Digest;

/// Maximum size of one statement.
pub const MAX_STATEMENT_BYTES: usize = 256 << 10;
/// Maximum number of statements of one version. Further ones are not stored.
pub const MAX_STATEMENTS: u32 = 64;
/// Maximum length of a kind in bytes.
pub const MAX_KIND_BYTES: usize = 200;

/// A statement that a commit adds. The commit drops the statement if its version is not in the
/// catalog afterwards, or if the statement is stored already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedStatement {
    pub name: String,
    pub version: String,
    /// File of the version that the statement is about; empty for the whole version.
    pub path: String,
    /// Path in the repository from which the statement can be fetched. If a commit hides this file
    /// of the version, it also removes the statement.
    pub source: String,
    /// Format of the statement: a media type.
    pub kind: String,
    /// Digest of the expected subject.
    pub subject: Digest,
    /// The statement itself; empty if it is too large to be verified.
    pub bundle: Bytes,
}
