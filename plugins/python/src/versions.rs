//! Compares versions in the order of PEP 440. The host needs this order for the version ranges of
//! advisories.

use packhouse_sdk::Versions;

use crate::Python;
use crate::version::Version;

/// A version whose spellings all compare equal.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared(Version);

impl Versions for Python {
    type Version = Compared;

    fn version(text: &str) -> Option<Compared> {
        Version::parse(text).map(Compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let rising = [
            "1.0.dev1",
            "1.0a1.dev1",
            "1.0a1",
            "1.0b2",
            "1.0rc1",
            "1.0",
            "1.0+local",
            "1.0.post1",
            "1.1",
            "1!0.5",
        ];
        for pair in rising.windows(2) {
            let [lower, higher] = [Python::version(pair[0]), Python::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0", "v1.0.0"), ("1.0a1", "1.0-ALPHA.1"), ("1.0.post1", "1.0-1")] {
            let [one, other] = [Python::version(one), Python::version(other)];
            assert!(one.is_some() && one == other);
        }
        for none in ["", "x", "1.0-x-y"] {
            assert!(Python::version(none).is_none(), "{none}");
        }
    }
}
