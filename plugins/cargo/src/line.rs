//! A line of the index: a version as cargo's resolver sees it.

use packhouse_sdk::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A version of a crate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) vers: String,
    pub(crate) deps: Vec<Dependency>,
    /// SHA-256 of the crate file in hex.
    pub(crate) cksum: String,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) yanked: bool,
    #[serde(default)]
    pub(crate) links: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rust_version: Option<String>,
    /// 2 where there are features of the newer kind.
    #[serde(default = "one")]
    pub(crate) v: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) features2: BTreeMap<String, Vec<String>>,
    /// When it was published: `2026-11-23T03:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pubtime: Option<String>,
}

fn one() -> u32 {
    1
}

/// What a version needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) req: String,
    pub(crate) features: Vec<String>,
    pub(crate) optional: bool,
    pub(crate) default_features: bool,
    pub(crate) target: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) registry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<String>,
}

/// A time in the form that cargo reads: to the second, in UTC.
pub(crate) fn written(ms: u64) -> String {
    Timestamp::from_ms(ms - ms % 1000).to_rfc3339().replace(".000Z", "Z")
}

/// A line of an upstream's index: what this server has to know of it, and the whole, which goes on as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignLine {
    pub(crate) name: String,
    pub(crate) version: semver::Version,
    pub(crate) checksum: Digest,
    /// In ms since 1970, where it is told.
    pub(crate) published: Option<u64>,
    pub(crate) yanked: bool,
    pub(crate) text: String,
}

/// Those members that are read of a foreign line.
#[derive(Deserialize)]
struct Told {
    name: String,
    vers: String,
    cksum: String,
    #[serde(default)]
    yanked: bool,
    #[serde(default)]
    pubtime: Option<String>,
}

/// Bytes of a line, and of a version in it: it is kept in a record of at most 1 MiB, under a key that names the version.
pub(crate) const LIMIT: usize = 700 << 10;
const VERSION: usize = 128;

impl ForeignLine {
    /// Reads a line; none for one that cargo could not use either, and one that is larger than any.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.len() > LIMIT {
            return None;
        }
        let told: Told = serde_json::from_str(text).ok().filter(|told: &Told| told.vers.len() <= VERSION)?;
        Some(Self {
            version: semver::Version::parse(&told.vers).ok()?,
            checksum: Digest::new("sha256", &told.cksum.to_ascii_lowercase()).ok()?,
            published: told.pubtime.and_then(|time| Timestamp::parse_rfc3339(&time)?.to_ms()),
            yanked: told.yanked,
            name: told.name,
            text: text.trim().to_owned(),
        })
    }
}

impl ForeignLine {
    /// What a line says that its version needs, as far as it can be read.
    pub(crate) fn dependencies(text: &str) -> Vec<Dependency> {
        serde_json::from_str::<Line>(text).map(|line| line.deps).unwrap_or_default()
    }
}

/// A version without what does not count when two are compared: of `1.0.0+a` and `1.0.0+b` there is one.
pub(crate) fn without_build(version: &semver::Version) -> String {
    semver::Version { build: semver::BuildMetadata::EMPTY, ..version.clone() }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_to_the_second() {
        assert_eq!(written(1_795_237_300_123), "2026-11-21T05:01:40Z");
    }

    #[test]
    fn foreign_lines_are_read_as_far_as_they_matter() {
        let sum = "AB".repeat(32);
        let text = format!(
            r#"{{"name":"A","vers":"1.0.0+x","cksum":"{sum}","pubtime":"2026-11-21T05:01:40Z","new":[1],"yanked":true}} "#
        );
        let line = ForeignLine::read(&text).unwrap();
        assert_eq!(
            (line.text.as_str(), line.yanked, line.published),
            (text.trim(), true, Some(1_795_237_300_000))
        );
        assert_eq!(without_build(&line.version), "1.0.0");
        for bad in ["", "{}", "[]", r#"{"name":"a","vers":"1","cksum":"x"}"#] {
            assert_eq!(ForeignLine::read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(text in "\\PC{0,200}") {
            let _ = ForeignLine::read(&text);
        }
    }
}
