//! The semver order of versions, with which the host evaluates the ranges of advisories.

use packhouse_sdk::Versions;

use crate::Cargo;

/// A version without its build metadata, because semver ignores them in comparisons.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(u64, u64, u64, semver::Prerelease);

impl Versions for Cargo {
    type Version = Precedence;

    fn version(text: &str) -> Option<Precedence> {
        let version = semver::Version::parse(text).ok()?;
        Some(Precedence(version.major, version.minor, version.patch, version.pre))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_semver() {
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
            let [lower, higher] = [Cargo::version(pair[0]), Cargo::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        let [one, other] = [Cargo::version("1.0.0+a"), Cargo::version("1.0.0+b")];
        assert!(one.is_some() && one == other);
        for invalid in ["1.0", "", "v1.0.0"] {
            assert!(Cargo::version(invalid).is_none(), "{invalid}");
        }
    }
}
