//! The records of the format: their keys and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `f/<path>` | a file: its digests, size and time |
//! | `c/<path>` | checksums that arrived before their file |
//! | `s/<path>` | in proxies: the signatures that the plugin stated to the host for a file |
//! | `u/<folder>` | in proxies: the versions of the artifact that the upstream has offered |
//! | `a/<folder>//v/<version>` | a version of the artifact, with the time of its last change |
//! | `a/<folder>//m` | the `maven-metadata.xml` that a client uploaded, byte by byte |
//! | `a/<folder>//p/<artifact>` | a plugin that the group's metadata names |
//! | `a/<folder>//t` | the time of the last upload of metadata or the last deletion in the folder |
//!
//! No path contains two slashes in a row. One scan of `a/<folder>//` therefore reads everything
//! that the metadata of a folder is generated from, and nothing of the folders below it. Each
//! version has its own record, so that parallel deploys do not conflict.

use crate::checksum::Algorithm;
use crate::layout::VersionFile;
use crate::metadata::MavenPlugin;
use packhouse_sdk::{Blob, Digest, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Lifetime of a checksum without its file, in ms: a day.
const PENDING_FOR: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn file(path: &str) -> String {
    format!("f/{path}")
}

/// Prefix of the files in this folder and below it.
pub(crate) fn files_in(folder: &str) -> String {
    below("f/", folder)
}

pub(crate) fn pending(path: &str) -> String {
    format!("c/{path}")
}

pub(crate) fn stated(path: &str) -> String {
    format!("s/{path}")
}

/// Prefix of the records from which the metadata of a folder is generated.
pub(crate) fn about(folder: &str) -> String {
    format!("a/{folder}//")
}

/// Prefix of the versions of the artifact in this folder.
pub(crate) fn versions(folder: &str) -> String {
    format!("a/{folder}//v/")
}

pub(crate) fn version(item: &VersionFile) -> String {
    format!("{}{}", versions(&item.folder), item.version)
}

pub(crate) fn metadata(folder: &str) -> String {
    format!("a/{folder}//m")
}

pub(crate) fn plugin(folder: &str, artifact: &str) -> String {
    format!("a/{folder}//p/{artifact}")
}

pub(crate) fn touched(folder: &str) -> String {
    format!("a/{folder}//t")
}

/// Prefix of the keys below a folder. `kind` is the start of the key: `f/`, `c/` or `a/`.
pub(crate) fn below(kind: &str, folder: &str) -> String {
    match folder {
        "" => kind.to_owned(),
        folder => format!("{kind}{folder}/"),
    }
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) sha256: Digest,
    /// Size in bytes.
    pub(crate) size: u64,
    pub(crate) sha1: String,
    pub(crate) md5: String,
    /// SHA-512 in hex, once a client has uploaded it. It is not computed for every upload, because
    /// that takes another pass over all bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha512: Option<String>,
    /// Time of the upload, in ms since 1970.
    pub(crate) time: u64,
    /// Texts of the uploaded checksum files of this file, by the name of the algorithm; empty if
    /// the text is the bare hex. `None` in records that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stated: Option<BTreeMap<String, String>>,
    /// The licence that the file states if it is a POM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) licence: String,
}

impl FileRecord {
    /// Creates the record of a body. The intent of the request must have asked for the digests
    /// `sha1` and `md5`.
    pub(crate) fn of(body: &Blob, time: u64) -> Result<Self, Error> {
        Ok(Self {
            sha256: body.sha256()?,
            size: body.size()?,
            sha1: body.digest("sha1")?.hex().to_owned(),
            md5: body.digest("md5")?.hex().to_owned(),
            sha512: None,
            time,
            stated: Some(BTreeMap::new()),
            licence: String::new(),
        })
    }

    /// Adds the text of a checksum file that states `hex`. Returns false if nothing changes.
    pub(crate) fn remember_stated(&mut self, algorithm: Algorithm, text: &str, hex: &str) -> bool {
        let text = if text == hex { "" } else { text };
        let stated = self.stated.get_or_insert_default();
        stated.insert(algorithm.name().to_owned(), text.to_owned()).is_none_or(|before| before != text)
    }

    /// Returns true if a client uploaded this checksum, or if the record is too old to tell.
    pub(crate) fn is_stated(&self, algorithm: Algorithm) -> bool {
        self.stated.as_ref().is_none_or(|stated| stated.contains_key(algorithm.name()))
    }

    /// The text of an uploaded checksum file if it is more than the bare hex.
    pub(crate) fn stated(&self, algorithm: Algorithm) -> Option<&str> {
        let text = self.stated.as_ref()?.get(algorithm.name())?;
        Some(text.as_str()).filter(|text| !text.is_empty())
    }

    /// The checksum in hex, if the record has it.
    pub(crate) fn known(&self, algorithm: Algorithm) -> Option<&str> {
        match algorithm {
            Algorithm::Md5 => Some(&self.md5),
            Algorithm::Sha1 => Some(&self.sha1),
            Algorithm::Sha256 => Some(self.sha256.hex()),
            Algorithm::Sha512 => self.sha512.as_deref(),
        }
    }
}

/// Checksums that arrived before their file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingChecksums {
    /// Time of the last upload, in ms since 1970.
    pub(crate) time: u64,
    /// Texts of the checksum files, by the name of the algorithm.
    pub(crate) sums: BTreeMap<String, String>,
}

impl PendingChecksums {
    /// Returns the checksums, or none if they have expired. The remains of an abandoned upload must
    /// not block the file for ever.
    pub(crate) fn current(self, now: u64) -> Self {
        if now.saturating_sub(self.time) > PENDING_FOR { Self::default() } else { self }
    }

    /// The texts of the checksum files with their algorithms.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (Algorithm, &str)> {
        Algorithm::ALL.into_iter().filter_map(|algorithm| Some((algorithm, self.text(algorithm)?)))
    }

    /// The text for this algorithm.
    pub(crate) fn text(&self, algorithm: Algorithm) -> Option<&str> {
        self.sums.get(algorithm.name()).map(String::as_str)
    }
}

/// A plugin. The name of its artifact is in the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PluginRecord {
    prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl PluginRecord {
    pub(crate) fn of(plugin: &MavenPlugin) -> Self {
        Self { prefix: plugin.prefix.clone(), name: plugin.name.clone() }
    }

    pub(crate) fn into_plugin(self, artifact: &str) -> MavenPlugin {
        MavenPlugin { name: self.name, prefix: self.prefix, artifact: artifact.to_owned() }
    }
}

/// Encodes a time for a record.
pub(crate) fn time(ms: u64) -> Vec<u8> {
    ms.to_string().into_bytes()
}

/// Decodes the time of a record; 0 if it has none.
pub(crate) fn read_time(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
