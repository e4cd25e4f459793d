//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `p/<project>` | a project: its own spelling of its name |
//! | `s/<project>` | the status that somebody gave it; it stays when the project's last file goes |
//! | `v/<project>/<version>` | a version, under the text that is the same for equal versions: its summary |
//! | `y/<project>/<version>` | that a version was yanked, and why |
//! | `f/<project>/<file>` | a file: digests, size, time, what goes with it |
//! | `a/<project>/<file>` | of a proxy: that its upstream was asked for what is signed of the file of this SHA-256 |
//! | `d/<file>` | that the name of this file was used, in one form for all its spellings; it stays when the file goes |
//!
//! Names of projects are normalised and hold no slash, so that one scan of `f/<project>/` reads a project and no other.
//! `p/` and `v/` are put by every upload, whatever is there: so no upload waits for another, and a deletion that takes the last
//! file sees that it was too late. What people set by hand stands beside them, in records of its own.

use packhouse_sdk::Digest;
use serde::{Deserialize, Serialize};

pub(crate) fn project(project: &str) -> String {
    format!("p/{project}")
}

pub(crate) fn status(project: &str) -> String {
    format!("s/{project}")
}

pub(crate) fn versions(project: &str) -> String {
    format!("v/{project}/")
}

/// `key` is the version's.
pub(crate) fn version(project: &str, key: &str) -> String {
    format!("v/{project}/{key}")
}

pub(crate) fn all_yanked(project: &str) -> String {
    format!("y/{project}/")
}

pub(crate) fn yanked(project: &str, key: &str) -> String {
    format!("y/{project}/{key}")
}

pub(crate) fn files(project: &str) -> String {
    format!("f/{project}/")
}

pub(crate) fn file(project: &str, filename: &str) -> String {
    format!("f/{project}/{filename}")
}

pub(crate) fn stated(project: &str, filename: &str) -> String {
    format!("a/{project}/{filename}")
}

/// `key` is the file name's.
pub(crate) fn used(key: &str) -> String {
    format!("d/{key}")
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectRecord {
    /// As its first file's metadata have it.
    pub(crate) name: String,
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    /// Normalised.
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) summary: String,
    /// The licence that its author states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
}

/// That a version was yanked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Yanked {
    /// May be empty.
    pub(crate) reason: String,
}

/// A file. Where a blob goes with it, the blob is named beside the file's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    /// Normalised, as it stands in the file's address.
    pub(crate) version: String,
    pub(crate) sha256: Digest,
    /// Bytes.
    pub(crate) size: u64,
    /// When it was uploaded, in ms since 1970.
    pub(crate) time: u64,
    pub(crate) md5: String,
    /// In hex, of 256 bits.
    pub(crate) blake2: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requires_python: Option<String>,
    /// Its METADATA or PKG-INFO; where it is `bare`, the file itself stands in, since older programs do not read a record without it.
    pub(crate) metadata: Digest,
    /// Whether it has no metadata that installers can read: another server had it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bare: bool,
    /// A signature of who published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<Digest>,
    /// Its provenance: the attestations that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Digest>,
    /// Bills of materials that it brought along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sboms: Vec<Digest>,
}

impl FileRecord {
    /// Its METADATA or PKG-INFO, if it has any that installers can read.
    pub(crate) fn metadata(&self) -> Option<&Digest> {
        (!self.bare).then_some(&self.metadata)
    }

    /// Every blob that it keeps alive.
    pub(crate) fn blobs(&self) -> Vec<Digest> {
        let mut blobs = vec![self.sha256.clone()];
        blobs.extend(self.metadata().cloned());
        blobs.extend(self.signature.clone());
        blobs.extend(self.provenance.clone());
        blobs.extend(self.sboms.iter().cloned());
        blobs
    }
}

#[cfg(test)]
mod tests {
    use super::FileRecord;
    use serde_json::json;

    #[test]
    fn a_record_without_metadata_is_one_that_older_programs_read() {
        let sha256 = |hex: &str| format!("sha256:{}", hex.repeat(32));
        let written = json!({
            "version": "1.0", "sha256": sha256("ab"), "size": 1, "time": 2, "md5": "", "blake2": "", "metadata": sha256("cd"),
        });
        let record: FileRecord = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(record.metadata().map(ToString::to_string), Some(sha256("cd")));
        assert_eq!(record.blobs().len(), 2);
        assert_eq!(serde_json::to_value(&record).unwrap(), written);
        let bare = FileRecord { metadata: record.sha256.clone(), bare: true, ..record };
        assert_eq!((bare.metadata(), bare.blobs()), (None, vec![bare.sha256.clone()]));
        let written = serde_json::to_value(&bare).unwrap();
        assert_eq!((&written["metadata"], &written["bare"]), (&json!(sha256("ab")), &json!(true)));
        assert_eq!(serde_json::from_value::<FileRecord>(written).unwrap(), bare);
    }
}
