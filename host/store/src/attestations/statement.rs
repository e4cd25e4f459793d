//! A signed statement as it comes with a commit, and its bounds.

use bytes::Bytes;

use crate::digest::Digest;

/// Bytes of one statement.
pub const MAX_STATEMENT_BYTES: usize = 256 << 10;
/// Statements of one version: what comes beyond is not kept here.
pub const MAX_STATEMENTS: u32 = 64;
/// Bytes of a kind.
pub const MAX_KIND_BYTES: usize = 200;

/// A statement that comes with a commit. One whose version is not shown then is not kept; neither is one that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedStatement {
    /// The package.
    pub name: String,
    /// The version.
    pub version: String,
    /// The file of the version that it is about; empty: the version.
    pub path: String,
    /// Where its bytes are fetched: a path in the repository. Hidden as a file of the version, it takes the statement with it.
    pub source: String,
    /// Its form: a media type.
    pub kind: String,
    /// What it is to be about.
    pub subject: Digest,
    /// The statement itself; empty where it is too large to be looked at.
    pub bundle: Bytes,
}
