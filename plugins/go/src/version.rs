//! Versions of modules: `v1.2.3`, `v0.0.0-20261121050140-abcdefabcdef`, `v2.0.0+incompatible`.

use crate::module::Module;
use packhouse_sdk::Timestamp;
use std::cmp::Ordering;
use std::fmt;

/// Maximum bytes of a version.
const LIMIT: usize = 200;

/// A canonical version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    text: String,
    semver: semver::Version,
}

impl Version {
    /// Parses a canonical version: `v`, three numbers, and optionally a pre-release and
    /// `+incompatible`. Returns `None` for anything else.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let semver = semver::Version::parse(text.strip_prefix('v')?).ok()?;
        let built = matches!(semver.build.as_str(), "" | "incompatible");
        (built && text.len() <= LIMIT).then(|| Self { text: text.to_owned(), semver })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if a module with this path can have this version.
    pub(crate) fn fits(&self, module: &Module) -> bool {
        let major = self.semver.major;
        match module.major() {
            "" => {
                if self.is_incompatible() {
                    major >= 2
                } else {
                    major < 2
                }
            }
            dotted if dotted.starts_with('.') => {
                let own = dotted.trim_end_matches("-unstable") == format!(".v{major}");
                // A pseudo-version of a commit before the first release is v0.0.0, whatever the
                // path says.
                (own || (self.is_pseudo() && self.text.starts_with("v0.0.0-"))) && !self.is_incompatible()
            }
            slashed => slashed == format!("/v{major}") && !self.is_incompatible(),
        }
    }

    /// Returns true for `+incompatible`, which marks version 2 or higher of a module without a
    /// go.mod.
    pub(crate) fn is_incompatible(&self) -> bool {
        !self.semver.build.is_empty()
    }

    /// Returns true for pre-releases, which include pseudo-versions.
    pub(crate) fn is_prerelease(&self) -> bool {
        !self.semver.pre.is_empty()
    }

    /// Returns true for a pseudo-version, which names a commit.
    pub(crate) fn is_pseudo(&self) -> bool {
        self.commit_time().is_some()
    }

    /// Returns the Unix time in ms of a pseudo-version's commit; `None` for other versions. The
    /// pre-release of a pseudo-version ends with a time of 14 digits, a hyphen and the start of the
    /// commit hash. The text before the time is `0.` or ends with `.0.`. The pre-release begins
    /// with the time only if the minor and the patch number are 0.
    pub(crate) fn commit_time(&self) -> Option<u64> {
        let (before, commit) = self.semver.pre.rsplit_once('-')?;
        let (base, time) = before.rsplit_once('.').map_or((None, before), |(base, time)| (Some(base), time));
        let whole = base.map_or(self.semver.minor == 0 && self.semver.patch == 0, |base| {
            base == "0" || base.ends_with(".0")
        });
        let digits = time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit());
        if !whole || !digits || commit.is_empty() || !commit.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            return None;
        }
        let part = |from: usize, to: usize| time.get(from..to)?.parse().ok();
        let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
        let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
        Timestamp { year, month, day, hour, minute, second, ms: 0 }.to_ms()
    }

    /// Sort key for `@latest`, which names the version with the highest key. Releases rank above
    /// pre-releases, and pre-releases above pseudo-versions. Among versions of one kind, those with
    /// `+incompatible` rank last. The version number decides between versions that are equal in
    /// both respects.
    pub(crate) fn rank(&self) -> (bool, bool, bool, &semver::Version) {
        (!self.is_prerelease(), !self.is_pseudo(), !self.is_incompatible(), &self.semver)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.semver.cmp(&other.semver)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        Version::new(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn versions_are_canonical() {
        for bad in ["", "1.0.0", "v1", "v1.0", "v01.0.0", "v1.0.0+x", "v1.0.0-", "v1.0.0 ", "master"] {
            assert_eq!(Version::new(bad), None, "{bad}");
        }
        assert!(version("v1.0.0-rc.1").is_prerelease() && !version("v1.0.0-rc.1").is_pseudo());
        assert!(version("v2.0.0+incompatible").is_incompatible());
    }

    #[test]
    fn pseudo_versions_contain_the_time_of_their_commit() {
        for text in [
            "v0.0.0-20261121050140-abcdefabcdef",
            "v1.2.4-0.20261121050140-abcdefabcdef",
            "v1.2.3-pre.0.20261121050140-abcdefabcdef",
            "v2.0.1-0.20261121050140-abcdefabcdef+incompatible",
        ] {
            assert_eq!(version(text).commit_time(), Some(1_795_237_300_000), "{text}");
        }
        for text in [
            "v1.2.3-20261121050140-abcdefabcdef",
            "v0.0.0-2026112105014-abc",
            "v0.0.0-20261321050140-abc",
            "v1.2.3-1.20261121050140-abc",
        ] {
            assert_eq!(version(text).commit_time(), None, "{text}");
        }
    }

    #[test]
    fn a_version_fits_the_major_version_of_its_path() {
        for (path, text, fits) in [
            ("a.b/c", "v1.0.0", true),
            ("a.b/c", "v0.1.0", true),
            ("a.b/c", "v2.0.0", false),
            ("a.b/c", "v2.0.0+incompatible", true),
            ("a.b/c", "v1.0.0+incompatible", false),
            ("a.b/c/v2", "v2.1.0", true),
            ("a.b/c/v2", "v3.0.0", false),
            ("a.b/c/v2", "v2.0.0+incompatible", false),
            ("gopkg.in/yaml.v3", "v3.0.1", true),
            ("gopkg.in/yaml.v3", "v2.0.1", false),
            ("gopkg.in/yaml.v3", "v0.0.0-20261121050140-abcdefabcdef", true),
        ] {
            assert_eq!(version(text).fits(&Module::new(path).unwrap()), fits, "{path} {text}");
        }
    }

    #[test]
    fn the_latest_is_a_release_if_there_is_one() {
        let latest = |texts: &[&str]| {
            let all: Vec<Version> = texts.iter().map(|text| version(text)).collect();
            all.iter().max_by_key(|version| version.rank()).unwrap().text.clone()
        };
        assert_eq!(latest(&["v1.9.0", "v1.10.0", "v1.11.0-rc.1"]), "v1.10.0");
        assert_eq!(
            latest(&["v1.0.0-rc.2", "v1.0.0-rc.10", "v1.0.1-0.20261121050140-abcdefabcdef"]),
            "v1.0.0-rc.10"
        );
        assert_eq!(latest(&["v1.0.0", "v2.0.0+incompatible"]), "v1.0.0");
    }

    proptest! {
        #[test]
        fn any_text_is_a_version_or_none(text in "v?[0-9a-z.+-]{0,40}") {
            if let Some(version) = Version::new(&text) {
                prop_assert_eq!(version.as_str(), &text);
                let _ = (version.commit_time(), version.rank());
            }
        }
    }
}
