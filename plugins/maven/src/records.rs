//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `f/<path>` | a file: its digests, size and time |
//! | `c/<path>` | checksums that came before their file |
//! | `s/<path>` | of a proxy: what was stated of a file, by the upstream's signatures of it |
//! | `a/<folder>//v/<version>` | the artifact in this folder has this version; when it last changed |
//! | `a/<folder>//m` | the `maven-metadata.xml` that a client put there, byte by byte |
//! | `a/<folder>//p/<artifact>` | a plugin that the group in this folder names |
//! | `a/<folder>//t` | when something else changed that the folder's metadata tells |
//!
//! No path holds two slashes in a row, so that one scan of `a/<folder>//` reads all that a folder's metadata is made of, and
//! nothing of the folders below it. Each version has a record of its own: parallel deploys never meet in one.

use crate::checksum::Algorithm;
use crate::layout::Item;
use crate::metadata::Plugin;
use packhouse_sdk::{Blob, Digest, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a checksum without its file counts, in ms: a day.
const HELD_FOR: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn file(path: &str) -> String {
    format!("f/{path}")
}

/// Files in this folder and below it.
pub(crate) fn files_in(folder: &str) -> String {
    below("f/", folder)
}

pub(crate) fn held(path: &str) -> String {
    format!("c/{path}")
}

pub(crate) fn stated(path: &str) -> String {
    format!("s/{path}")
}

/// What a folder's metadata is made of.
pub(crate) fn about(folder: &str) -> String {
    format!("a/{folder}//")
}

/// The versions of the artifact in this folder.
pub(crate) fn versions(folder: &str) -> String {
    format!("a/{folder}//v/")
}

pub(crate) fn version(item: &Item) -> String {
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

/// `kind` is the key's beginning: `f/`, `c/` or `a/`.
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
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) sha1: String,
    pub(crate) md5: String,
    /// Only once somebody has asked for it: a whole pass over the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha512: Option<String>,
    /// When it was put, in ms since 1970.
    pub(crate) time: u64,
    /// Checksum files that clients put beside it, by the algorithm's name: their text, or nothing where that is the bare hex.
    /// None in records of before they were remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stated: Option<BTreeMap<String, String>>,
    /// Of a POM the licence that it states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) licence: String,
}

impl FileRecord {
    /// Of a body that was received with `sha1` and `md5`.
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

    /// Remembers the text of a checksum file that says `hex`. False where nothing changes.
    pub(crate) fn remember_stated(&mut self, algorithm: Algorithm, text: &str, hex: &str) -> bool {
        let text = if text == hex { "" } else { text };
        let stated = self.stated.get_or_insert_default();
        stated.insert(algorithm.name().to_owned(), text.to_owned()).is_none_or(|before| before != text)
    }

    /// Whether a client put this checksum beside it, as far as is known.
    pub(crate) fn is_stated(&self, algorithm: Algorithm) -> bool {
        self.stated.as_ref().is_none_or(|stated| stated.contains_key(algorithm.name()))
    }

    /// The text of a checksum file where it is more than the bare hex.
    pub(crate) fn stated(&self, algorithm: Algorithm) -> Option<&str> {
        let text = self.stated.as_ref()?.get(algorithm.name())?;
        Some(text.as_str()).filter(|text| !text.is_empty())
    }

    /// The checksum in hex, where it is known.
    pub(crate) fn known(&self, algorithm: Algorithm) -> Option<&str> {
        match algorithm {
            Algorithm::Md5 => Some(&self.md5),
            Algorithm::Sha1 => Some(&self.sha1),
            Algorithm::Sha256 => Some(self.sha256.hex()),
            Algorithm::Sha512 => self.sha512.as_deref(),
        }
    }
}

/// Checksums that came before their file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// When the last of them came, in ms since 1970.
    pub(crate) time: u64,
    /// By the algorithm's name, as they were put.
    pub(crate) sums: BTreeMap<String, String>,
}

impl Held {
    /// What still counts now: what an upload left behind that was given up must not stand in the way for ever.
    pub(crate) fn current(self, now: u64) -> Self {
        if now.saturating_sub(self.time) > HELD_FOR { Self::default() } else { self }
    }

    /// The text of each by its algorithm.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (Algorithm, &str)> {
        Algorithm::ALL.into_iter().filter_map(|algorithm| Some((algorithm, self.text(algorithm)?)))
    }

    /// The text of this one.
    pub(crate) fn text(&self, algorithm: Algorithm) -> Option<&str> {
        self.sums.get(algorithm.name()).map(String::as_str)
    }
}

/// A plugin, without the artifact's name, which stands in the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PluginRecord {
    prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl PluginRecord {
    pub(crate) fn of(plugin: &Plugin) -> Self {
        Self { prefix: plugin.prefix.clone(), name: plugin.name.clone() }
    }

    pub(crate) fn into_plugin(self, artifact: &str) -> Plugin {
        Plugin { name: self.name, prefix: self.prefix, artifact: artifact.to_owned() }
    }
}

/// A time as a record holds it.
pub(crate) fn time(ms: u64) -> Vec<u8> {
    ms.to_string().into_bytes()
}

/// A record's time; 0 when it holds none.
pub(crate) fn read_time(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
