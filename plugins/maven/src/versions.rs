//! Maven's order of versions, for the version ranges of advisories. Any text except an empty one is
//! a version.

use packhouse_sdk::Versions;

use std::cmp::Ordering;

use crate::Maven;
use crate::version::MavenVersion;

/// A version with Maven's equality: `1.0` and `1.0.0` are equal.
pub struct ComparedVersion(MavenVersion);

impl Ord for ComparedVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&other.0)
    }
}

impl PartialOrd for ComparedVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ComparedVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ComparedVersion {}

impl Versions for Maven {
    type Version = ComparedVersion;

    fn version(text: &str) -> Option<ComparedVersion> {
        (!text.is_empty()).then(|| ComparedVersion(MavenVersion::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_mavens_order() {
        let rising = [
            "1.0-alpha-1",
            "1.0-beta-2",
            "1.0-m3",
            "1.0-rc1",
            "1.0-SNAPSHOT",
            "1.0",
            "1.0-sp",
            "1.0-jre",
            "1.0-1",
            "1.0.1",
            "1.10",
        ];
        for pair in rising.windows(2) {
            let [lower, higher] = [Maven::version(pair[0]), Maven::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0", "1.0.0"), ("1.0", "1-ga"), ("1.0-RC1", "1.0-rc1")] {
            let [one, other] = [Maven::version(one), Maven::version(other)];
            assert!(one.is_some() && one == other);
        }
        assert!(Maven::version("").is_none());
    }
}
