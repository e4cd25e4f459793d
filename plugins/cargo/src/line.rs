//! Lines of the index. Each line describes one version for cargo's resolver.

use packhouse_sdk::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line of a hosted repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexLine {
    pub(crate) name: String,
    pub(crate) vers: String,
    pub(crate) deps: Vec<IndexDependency>,
    /// SHA-256 of the crate file in hex.
    pub(crate) cksum: String,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) yanked: bool,
    #[serde(default)]
    pub(crate) links: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rust_version: Option<String>,
    /// Version of the line format: 2 if `features2` is used.
    #[serde(default = "one")]
    pub(crate) v: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) features2: BTreeMap<String, Vec<String>>,
    /// Time of the publish: `2026-11-23T03:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pubtime: Option<String>,
}

fn one() -> u32 {
    1
}

/// A dependency in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexDependency {
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

/// Formats a time for cargo: in UTC, with a precision of seconds.
pub(crate) fn index_time(ms: u64) -> String {
    Timestamp::from_ms(ms - ms % 1000).to_rfc3339().replace(".000Z", "Z")
}

/// A line of an upstream's index: the members that this server needs, and the whole line, which
/// clients receive unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamLine {
    pub(crate) name: String,
    pub(crate) version: semver::Version,
    pub(crate) checksum: Digest,
    /// Time of the publish in ms since 1970, if the line states it.
    pub(crate) published: Option<u64>,
    pub(crate) yanked: bool,
    pub(crate) text: String,
}

/// The members that the plugin reads from an upstream's line.
#[derive(Deserialize)]
struct ParsedLine {
    name: String,
    vers: String,
    cksum: String,
    #[serde(default)]
    yanked: bool,
    #[serde(default)]
    pubtime: Option<String>,
}

/// Longest line, in bytes. The line is stored in a record, which may have at most 1 MiB.
pub(crate) const LINE_LIMIT: usize = 700 << 10;
/// Longest version in a line, in bytes. The key of a record contains the version.
const VERSION_LIMIT: usize = 128;

impl UpstreamLine {
    /// Parses a line. `None` if the line or its version is too long, or if the line is invalid, so
    /// that cargo could not use it.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.len() > LINE_LIMIT {
            return None;
        }
        let parsed: ParsedLine = serde_json::from_str(text)
            .ok()
            .filter(|parsed: &ParsedLine| parsed.vers.len() <= VERSION_LIMIT)?;
        Some(Self {
            version: semver::Version::parse(&parsed.vers).ok()?,
            checksum: Digest::new("sha256", &parsed.cksum.to_ascii_lowercase()).ok()?,
            published: parsed.pubtime.and_then(|time| Timestamp::parse_rfc3339(&time)?.to_ms()),
            yanked: parsed.yanked,
            name: parsed.name,
            text: text.trim().to_owned(),
        })
    }
}

impl UpstreamLine {
    /// The dependencies in a line. Empty if the line cannot be parsed.
    pub(crate) fn dependencies(text: &str) -> Vec<IndexDependency> {
        serde_json::from_str::<IndexLine>(text).map(|line| line.deps).unwrap_or_default()
    }
}

/// Returns a version without its build metadata, which comparisons ignore: `1.0.0+a` and `1.0.0+b`
/// are the same version.
pub(crate) fn without_build(version: &semver::Version) -> String {
    semver::Version { build: semver::BuildMetadata::EMPTY, ..version.clone() }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_a_precision_of_seconds() {
        assert_eq!(index_time(1_795_237_300_123), "2026-11-21T05:01:40Z");
    }

    #[test]
    fn the_needed_members_of_an_upstreams_line_are_read() {
        let sum = "AB".repeat(32);
        let text = format!(
            r#"{{"name":"A","vers":"1.0.0+x","cksum":"{sum}","pubtime":"2026-11-21T05:01:40Z","new":[1],"yanked":true}} "#
        );
        let line = UpstreamLine::read(&text).unwrap();
        assert_eq!(
            (line.text.as_str(), line.yanked, line.published),
            (text.trim(), true, Some(1_795_237_300_000))
        );
        assert_eq!(without_build(&line.version), "1.0.0");
        for bad in ["", "{}", "[]", r#"{"name":"a","vers":"1","cksum":"x"}"#] {
            assert_eq!(UpstreamLine::read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_handled(text in "\\PC{0,200}") {
            let _ = UpstreamLine::read(&text);
        }
    }
}
