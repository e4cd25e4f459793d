//! Records of the format: their keys and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `p/<project>` | the spelling of a project's name |
//! | `s/<project>` | the status that a user set; outlives the project's last file |
//! | `v/<project>/<version>` | summary and licence of a version; equal versions share this key |
//! | `y/<project>/<version>` | the reason of a yanked version |
//! | `f/<project>/<file>` | a file: digests, size, time, companions |
//! | `a/<project>/<file>` | in a proxy: SHA-256 of the file whose attestations were requested |
//! | `d/<file>` | a used file name; all its spellings share this key; outlives the file |
//!
//! Project names are normalized and contain no slash, so a scan of `f/<project>/` reads only that
//! project. Every upload writes `p/` and `v/` without a condition, so uploads do not conflict. A
//! concurrent deletion of the last file becomes stale through these writes and runs again. The
//! status and the yanks, which users set, are in separate records, so that no upload overwrites
//! them.

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

/// `key` is the version's key.
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

/// `key` is the file name's key.
pub(crate) fn used(key: &str) -> String {
    format!("d/{key}")
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectRecord {
    /// The spelling in the metadata of its latest upload.
    pub(crate) name: String,
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    /// Normalized.
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) summary: String,
    /// The author's licence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
}

/// Marks a yanked version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Yanked {
    /// May be empty.
    pub(crate) reason: String,
}

/// A file and the blobs that belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    /// Normalized, as in the file's path.
    pub(crate) version: String,
    pub(crate) sha256: Digest,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// Unix time of the upload in ms.
    pub(crate) time: u64,
    pub(crate) md5: String,
    /// BLAKE2b of 256 bits, in hex.
    pub(crate) blake2: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requires_python: Option<String>,
    /// Digest of the file's METADATA or PKG-INFO. If `bare` is set, this is the digest of the file
    /// itself, because older releases cannot read a record without this field.
    pub(crate) metadata: Digest,
    /// True if the file has no metadata that installers can read. Only files that were moved from
    /// another server can lack it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bare: bool,
    /// The publisher's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<Digest>,
    /// The provenance object with the attestations from the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Digest>,
    /// Bills of materials that the wheel contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sboms: Vec<Digest>,
}

impl FileRecord {
    /// Returns the digest of METADATA or PKG-INFO, if the file has metadata that installers can
    /// read.
    pub(crate) fn metadata(&self) -> Option<&Digest> {
        (!self.bare).then_some(&self.metadata)
    }

    /// Returns all blobs that the record refers to.
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
    fn older_releases_can_read_a_record_without_metadata() {
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
