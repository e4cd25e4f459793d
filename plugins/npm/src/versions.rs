//! Order of versions by semver. The host uses this order to check whether a version is in a range
//! of an advisory. Before the number, npm allows prefixes such as `v`.

use packhouse_sdk::Versions;

use crate::Npm;

/// A version without its build metadata, which does not affect precedence.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(u64, u64, u64, semver::Prerelease);

impl Versions for Npm {
    type Version = Precedence;

    fn version(text: &str) -> Option<Precedence> {
        let text = text.trim().trim_start_matches(['v', '=']).trim_start();
        let version = semver::Version::parse(text).ok()?;
        Some(Precedence(version.major, version.minor, version.patch, version.pre))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_precedence() {
        let rising = [
            "0.0.0-0",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.9",
            "1.0.0-rc.10",
            "1.0.0",
            "1.2.0",
            "1.10.0",
            "2.0.0-0",
            "2.0.0",
        ];
        for pair in rising.windows(2) {
            let [lower, higher] = [Npm::version(pair[0]), Npm::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0.0", "v1.0.0"), ("1.0.0+a", "=1.0.0+b")] {
            let [one, other] = [Npm::version(one), Npm::version(other)];
            assert!(one.is_some() && one == other);
        }
        for invalid in ["1.0", "", "latest"] {
            assert!(Npm::version(invalid).is_none(), "{invalid}");
        }
    }
}
