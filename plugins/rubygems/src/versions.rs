//! Compares versions in the order of `Gem::Version`. The host needs this order for the version
//! ranges of advisories.

use packhouse_sdk::Versions;

use std::cmp::Ordering;

use crate::RubyGems;
use crate::version::{compare, is_version};

/// Prefixes of platform names: processors, systems and implementations of Ruby.
const PLATFORMS: [&str; 36] = [
    "aarch64",
    "aix",
    "amd64",
    "arm",
    "cygwin",
    "dalvik",
    "darwin",
    "dotnet",
    "freebsd",
    "i386",
    "i486",
    "i586",
    "i686",
    "ia64",
    "java",
    "jruby",
    "linux",
    "loongarch",
    "macruby",
    "mingw",
    "mips",
    "mswin",
    "musl",
    "netbsd",
    "openbsd",
    "powerpc",
    "ppc",
    "riscv",
    "ruby",
    "s390",
    "solaris",
    "sparc",
    "truffleruby",
    "universal",
    "wasm",
    "x",
];

/// The version of a gem, without its platform.
pub struct GemVersion(String);

impl Ord for GemVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for GemVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GemVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for GemVersion {}

impl Versions for RubyGems {
    type Version = GemVersion;

    fn version(text: &str) -> Option<GemVersion> {
        let number = match text.split_once('-') {
            None => text.to_owned(),
            Some((number, platform)) if is_platform(platform) => number.to_owned(),
            // Some tools separate a pre-release with a hyphen, which `Gem::Version` reads as
            // `.pre.`.
            Some(_) => text.replace('-', ".pre."),
        };
        is_version(&number).then_some(GemVersion(number))
    }
}

fn is_platform(text: &str) -> bool {
    PLATFORMS.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_gem_version() {
        let rising =
            ["1.0.a", "1.0.b2", "1.0-preview1", "1.0-preview3", "1.0.rc1", "1.0", "1.0.1", "1.0.10", "2"];
        for pair in rising.windows(2) {
            let [lower, higher] = [RubyGems::version(pair[0]), RubyGems::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0", "1.0.0"), ("1.2.3", "1.2.3-x86_64-linux")] {
            let [one, other] = [RubyGems::version(one), RubyGems::version(other)];
            assert!(one.is_some() && one == other);
        }
        for invalid in ["", "x", "1.0-", "1.0-rc_1"] {
            assert!(RubyGems::version(invalid).is_none(), "{invalid}");
        }
    }
}
