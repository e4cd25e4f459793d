//! The content of `maven-metadata.xml`: one type for the documents of artifacts, snapshots and
//! groups.

mod read;
mod write;

pub(crate) use read::{BadMetadata, decoded};

use std::collections::BTreeMap;

use packhouse_sdk::Timestamp;

/// Largest document that a client may upload, in bytes: a record cannot hold more.
pub(crate) const LIMIT: u64 = 1_048_576;

/// A document. Missing elements are `None` or empty; elements that Maven does not know are left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MavenMetadata {
    pub(crate) group: Option<String>,
    pub(crate) artifact: Option<String>,
    /// The version, in the document of a snapshot: `1.0-SNAPSHOT`.
    pub(crate) version: Option<String>,
    pub(crate) latest: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) versions: Vec<String>,
    /// Number of versions that were left out of an upstream's document, because no artifact can
    /// have them.
    pub(crate) left_out: usize,
    /// Timestamp of a snapshot's newest build: `20261121.050140`.
    pub(crate) timestamp: Option<String>,
    /// Number of the newest build.
    pub(crate) build: Option<String>,
    pub(crate) files: Vec<SnapshotFile>,
    pub(crate) plugins: Vec<MavenPlugin>,
    /// Time of the last change: `20261121050140`, UTC.
    pub(crate) updated: Option<String>,
}

/// The newest version of a snapshot's file with this classifier and extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SnapshotFile {
    pub(crate) classifier: String,
    pub(crate) extension: String,
    pub(crate) value: String,
    pub(crate) updated: String,
}

/// A plugin that a group's document names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MavenPlugin {
    pub(crate) name: Option<String>,
    pub(crate) prefix: String,
    pub(crate) artifact: String,
}

impl MavenMetadata {
    /// Returns true if a client's document has the same content as `stored`, so that its bytes may
    /// be served. The time of the document and the order of its lists do not matter. `latest` may
    /// be missing, because Maven itself leaves it out.
    pub(crate) fn agrees_with(&self, stored: &Self) -> bool {
        agrees(&self.group, &stored.group)
            && agrees(&self.artifact, &stored.artifact)
            && agrees(&self.version, &stored.version)
            && agrees(&self.latest, &stored.latest)
            && self.release == stored.release
            && sorted(&self.versions) == sorted(&stored.versions)
            && self.has_same_build(stored)
            && self.file_values(stored) == stored.file_values(stored)
            && self.plugin_names() == stored.plugin_names()
    }

    /// Returns true if the document lists plugins and nothing else, as that of a group does.
    pub(crate) fn is_of_group(&self) -> bool {
        let versions = [&self.version, &self.latest, &self.release, &self.timestamp, &self.build];
        !self.plugins.is_empty()
            && self.versions.is_empty()
            && self.files.is_empty()
            && self.artifact.is_none()
            && versions.into_iter().all(Option::is_none)
    }

    /// Compares the newest builds. If `stored` has no timestamp, the number of the build does not
    /// matter.
    fn has_same_build(&self, stored: &Self) -> bool {
        self.timestamp == stored.timestamp && (stored.timestamp.is_none() || self.build == stored.build)
    }

    /// The version of each file, except for files whose version is the snapshot itself:
    /// `1.0-SNAPSHOT`.
    fn file_values(&self, stored: &Self) -> BTreeMap<(&str, &str), &str> {
        let files = self.files.iter().filter(|file| stored.version.as_ref() != Some(&file.value));
        files.map(|file| ((file.classifier.as_str(), file.extension.as_str()), file.value.as_str())).collect()
    }

    fn plugin_names(&self) -> BTreeMap<&str, (&str, Option<&str>)> {
        let plugins = self.plugins.iter();
        plugins
            .map(|plugin| (plugin.artifact.as_str(), (plugin.prefix.as_str(), plugin.name.as_deref())))
            .collect()
    }
}

fn agrees(uploaded: &Option<String>, stored: &Option<String>) -> bool {
    uploaded.is_none() || uploaded == stored
}

fn sorted(versions: &[String]) -> Vec<&str> {
    let mut versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    versions.sort_unstable();
    versions
}

/// Formats a time in ms since 1970 for metadata: `20261121050140`, UTC.
pub(crate) fn updated(ms: u64) -> String {
    let Timestamp { year, month, day, hour, minute, second, .. } = Timestamp::from_ms(ms);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Parses a time of metadata into ms since 1970; `None` if the text is not a time.
pub(crate) fn updated_ms(text: &str) -> Option<u64> {
    let (date, time) = text.split_at_checked(8)?;
    let (year, day) = date.split_at_checked(4)?;
    let (month, day) = day.split_at_checked(2)?;
    let (hour, second) = time.split_at_checked(2)?;
    let (minute, second) = second.split_at_checked(2)?;
    Timestamp::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))?.to_ms()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(versions: &[&str]) -> MavenMetadata {
        MavenMetadata {
            group: Some("g".into()),
            artifact: Some("a".into()),
            release: versions.last().map(|&version| version.into()),
            latest: versions.last().map(|&version| version.into()),
            versions: versions.iter().map(|&version| version.into()).collect(),
            ..MavenMetadata::default()
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(updated(0), "19700101000000");
        assert_eq!(updated(1_795_237_300_999), "20261121050140");
        assert_eq!(updated(951_782_400_000), "20000229000000");
        assert_eq!(updated(1_735_689_599_000), "20241231235959");
        for ms in [0, 1_795_237_300_000, 951_782_400_000, 1_735_689_599_000] {
            assert_eq!(updated_ms(&updated(ms)), Some(ms));
        }
        for text in [
            "",
            "2",
            "20261121",
            "2026112105014",
            "202611210501400",
            "20261321050140",
            "2026-11-21T05:01",
            "2026\u{e9}121050140",
        ] {
            assert_eq!(updated_ms(text), None, "{text}");
        }
    }

    #[test]
    fn the_document_of_a_group_lists_only_plugins() {
        let of_group = MavenMetadata {
            group: Some("g".into()),
            plugins: vec![MavenPlugin::default()],
            updated: Some("20261121050140".into()),
            ..MavenMetadata::default()
        };
        assert!(of_group.is_of_group());
        assert!(!MavenMetadata::default().is_of_group() && !artifact(&["1.0"]).is_of_group());
        let both = MavenMetadata { plugins: of_group.plugins, ..artifact(&["1.0"]) };
        assert!(!both.is_of_group());
    }

    #[test]
    fn a_document_agrees_if_its_content_is_the_same() {
        let stored = artifact(&["1.0", "1.1"]);
        let uploaded = MavenMetadata { latest: None, updated: Some("1".into()), ..artifact(&["1.0", "1.1"]) };
        assert!(uploaded.agrees_with(&stored));
        let reversed = MavenMetadata { versions: vec!["1.1".into(), "1.0".into()], ..uploaded.clone() };
        assert!(reversed.agrees_with(&stored));
        assert!(!artifact(&["1.1"]).agrees_with(&stored));
        assert!(!artifact(&["1.0", "1.0", "1.1"]).agrees_with(&stored));
        assert!(!MavenMetadata { release: Some("1.0".into()), ..uploaded.clone() }.agrees_with(&stored));
        assert!(!MavenMetadata { artifact: Some("b".into()), ..uploaded }.agrees_with(&stored));
    }

    #[test]
    fn a_snapshot_agrees_if_its_builds_are_the_same() {
        let file = |value: &str| SnapshotFile {
            extension: "jar".into(),
            value: value.into(),
            ..SnapshotFile::default()
        };
        let stored = MavenMetadata { version: Some("1-SNAPSHOT".into()), ..MavenMetadata::default() };
        let moving =
            MavenMetadata { files: vec![file("1-SNAPSHOT")], build: Some("3".into()), ..stored.clone() };
        assert!(moving.agrees_with(&stored));
        let unique = MavenMetadata { files: vec![file("1-20261121.050140-1")], ..stored.clone() };
        assert!(!unique.agrees_with(&stored));
        let later = SnapshotFile { updated: "2".into(), ..file("1-20261121.050140-1") };
        assert!(MavenMetadata { files: vec![later], ..stored }.agrees_with(&unique));
    }
}
