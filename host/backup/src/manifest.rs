//! What a backup says of itself, in a file that is written last.

use anyhow::{Context, ensure};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// A backup that is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it is known by: the time of its moment in UTC, and some random digits.
    pub id: String,
    /// The program's version.
    pub program: String,
    /// The moment whose state it has, in ms since 1970 by the database's clock. What was acknowledged before is in it.
    pub at_ms: i64,
    /// How long it took.
    pub took_ms: u64,
    /// Which step of the schema the rows are of.
    pub step: u64,
    /// The tables.
    pub tables: Vec<StoredTable>,
    /// How many blobs it names.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// SHA-256 of the list of blobs as it is stored.
    pub blob_list_sha256: String,
    /// How many of the blobs were not there from earlier backups.
    pub copied_blobs: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// What became of the key of sealed secrets.
    pub sealing_key: SealingKey,
    /// SHA-256 of the file of that key as it is stored; none in backups of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key_sha256: Option<String>,
    /// Whether rows, blobs and key are encrypted.
    pub encrypted: bool,
}

/// The rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTable {
    /// The table's name.
    pub name: String,
    /// The columns, in the order of a row's values.
    pub columns: Vec<String>,
    /// How many rows.
    pub rows: u64,
    /// SHA-256 of the compressed rows, before they were encrypted.
    pub sha256: String,
}

/// What became of the key with which the database's secrets are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealingKey {
    /// It is in the backup.
    Included,
    /// The setting `sealing_key` has it, so whoever restores must set it too.
    Set,
    /// It was to be left out.
    LeftOut,
    /// There was none: nothing was sealed yet.
    None,
}

impl Manifest {
    /// The folder of the backup of this id.
    pub(crate) fn folder(id: &str) -> String {
        format!("backups/{id}/")
    }

    /// The file that makes it whole.
    pub(crate) fn file(id: &str) -> String {
        format!("backups/{id}/manifest.json")
    }

    /// The file of a table's rows.
    pub(crate) fn rows(id: &str, table: &str) -> String {
        format!("backups/{id}/{table}.rows")
    }

    /// The file of the names of blobs.
    pub(crate) fn list(id: &str) -> String {
        format!("backups/{id}/blobs.list")
    }

    /// The file of the key of sealed secrets.
    pub(crate) fn key(id: &str) -> String {
        format!("backups/{id}/sealing.key")
    }

    /// The file that shows who made the backup.
    pub(crate) fn proof(id: &str) -> String {
        format!("backups/{id}/proof.json")
    }

    /// The file that is there while the backup is being taken.
    pub(crate) fn under_way(id: &str) -> String {
        format!("backups/{id}/under-way")
    }

    /// How many rows there are in all tables.
    #[must_use]
    pub fn rows_in_all(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// As it is stored: JSON in one line, and its SHA-256 in another.
    pub(crate) fn to_text(&self) -> anyhow::Result<String> {
        let json = serde_json::to_string(self).context("failed to write JSON")?;
        let sha256 = Sha256(sha2::Sha256::digest(&json).into());
        Ok(format!("{json}\n{sha256}\n"))
    }

    /// Of what is stored. An error where it is not what was written.
    pub(crate) fn from_text(text: &str) -> anyhow::Result<Manifest> {
        let (json, sha256) = text.trim_end().split_once('\n').context("the manifest is damaged")?;
        let found = Sha256(sha2::Sha256::digest(json).into());
        ensure!(found.to_string() == sha256, "the manifest is damaged: its SHA-256 is not {sha256}");
        serde_json::from_str(json).context("the manifest is one of a newer version of this program")
    }
}

/// Where the bytes of a blob lie, whatever backup names it.
pub(crate) fn content(sha256: &Sha256) -> String {
    let name = sha256.to_string();
    format!("{CONTENT}{}/{name}", name.get(..2).unwrap_or_default())
}

/// What the names of the files begin with that [`content`] names.
pub(crate) const CONTENT: &str = "content/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_was_changed_is_none() {
        let manifest = Manifest {
            id: "20260101T000000Z-00000000".to_owned(),
            program: "0.1.0".to_owned(),
            at_ms: 1,
            took_ms: 2,
            step: 12,
            tables: Vec::new(),
            blobs: 3,
            blob_bytes: 4,
            blob_list_sha256: String::new(),
            copied_blobs: 5,
            copied_bytes: 6,
            sealing_key: SealingKey::Included,
            sealing_key_sha256: None,
            encrypted: false,
        };
        let text = manifest.to_text().unwrap();
        assert_eq!(Manifest::from_text(&text).unwrap(), manifest);
        for changed in
            [text.replace("\"blobs\":3", "\"blobs\":4"), text[..text.len() / 2].to_owned(), String::new()]
        {
            assert!(Manifest::from_text(&changed).is_err(), "{changed}");
        }
    }
}
