//! Order of versions by semver. The host uses this order to check whether a version is in a range
//! of an advisory. An advisory writes `1.2.3` for a module's `v1.2.3`.

use packhouse_sdk::Versions;

use crate::Go;

/// A version without its build metadata, which does not affect precedence.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(u64, u64, u64, semver::Prerelease);

impl Versions for Go {
    type Version = Precedence;

    fn version(text: &str) -> Option<Precedence> {
        let version = semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()?;
        Some(Precedence(version.major, version.minor, version.patch, version.pre))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let rising = [
            "v0.0.0-20210101000000-abcdefabcdef",
            "v0.0.0-20220101000000-abcdefabcdef",
            "v0.0.1-0.20210101000000-abcdefabcdef",
            "0.0.1",
            "v1.2.3-rc.1",
            "1.2.3",
            "v2.0.0+incompatible",
        ];
        for pair in rising.windows(2) {
            let [lower, higher] = [Go::version(pair[0]), Go::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.2.3", "v1.2.3"), ("2.0.0", "v2.0.0+incompatible")] {
            let [one, other] = [Go::version(one), Go::version(other)];
            assert!(one.is_some() && one == other);
        }
        for none in ["1.0", "", "go1.20"] {
            assert!(Go::version(none).is_none(), "{none}");
        }
    }
}
