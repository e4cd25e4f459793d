//! The order of versions, with which the host evaluates the ranges of advisories.

use crate::Composer;
use crate::version::Version;
use packhouse_sdk::Versions;

impl Versions for Composer {
    type Version = Version;

    /// Returns `None` for a named branch, which is not in any range.
    fn version(text: &str) -> Option<Version> {
        Version::parse(text).filter(|version| !version.is_named_branch())
    }
}
