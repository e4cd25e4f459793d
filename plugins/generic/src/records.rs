//! The format's records: their keys and contents.
//!
//! | key | content |
//! | --- | --- |
//! | `f/<path>` | a file: its digests, size and time |
//! | `d/<path>` | empty; says that a file with this path was deleted |

use crate::checksum::Algorithm;
use packhouse_sdk::{Blob, Digest, Entry, Error, Repository};
use serde::{Deserialize, Serialize};

pub(crate) fn file(path: &str) -> String {
    format!("f/{path}")
}

/// Returns the key prefix of the files in this folder and below it.
pub(crate) fn files_in(folder: &str) -> String {
    if folder.is_empty() { "f/".to_owned() } else { format!("f/{folder}/") }
}

pub(crate) fn deleted(path: &str) -> String {
    format!("d/{path}")
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) sha256: Digest,
    /// Size in bytes.
    pub(crate) size: u64,
    pub(crate) sha1: String,
    pub(crate) md5: String,
    /// Time of the upload, in ms since 1970.
    pub(crate) time: u64,
}

impl FileRecord {
    /// Creates the record of an uploaded body, for which the host has computed `sha1` and `md5`.
    pub(crate) fn of(body: &Blob, time: u64) -> Result<Self, Error> {
        Ok(Self {
            sha256: body.sha256()?,
            size: body.size()?,
            sha1: body.digest("sha1")?.hex().to_owned(),
            md5: body.digest("md5")?.hex().to_owned(),
            time,
        })
    }

    /// Returns the record of the file at this path, or `None` if there is no such file.
    pub(crate) fn find(repository: &Repository, path: &str) -> Result<Option<Entry<Self>>, Error> {
        repository.get_json(&file(path))
    }

    /// Returns the recorded checksum in hex. Returns `None` for `sha512`, which must be computed
    /// from the bytes.
    pub(crate) fn known(&self, algorithm: Algorithm) -> Option<&str> {
        match algorithm {
            Algorithm::Md5 => Some(&self.md5),
            Algorithm::Sha1 => Some(&self.sha1),
            Algorithm::Sha256 => Some(self.sha256.hex()),
            Algorithm::Sha512 => None,
        }
    }
}
