//! A version that was found, in a repository or in an upstream.

use crate::version::Version;

/// A version, as JSON of which the file's address is left out.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) version: Version,
    pub(crate) json: String,
}
