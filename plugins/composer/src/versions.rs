//! The order of versions, by which the host judges the ranges of advisories.

use crate::Composer;
use crate::version::Version;
use packhouse_sdk::Versions;

impl Versions for Composer {
    type Version = Version;

    /// A branch with a name is in no range, before or after any version.
    fn version(text: &str) -> Option<Version> {
        Version::parse(text).filter(|version| !version.is_named_branch())
    }
}
