//! The manifest of a backup: the file that is written last.

use anyhow::{Context, ensure};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// Description of a complete backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The time of the backup in UTC, and some random digits.
    pub id: String,
    /// Version of the program that took the backup.
    pub program: String,
    /// Time of the snapshot, in ms since 1970 by the database's clock. Everything that was
    /// acknowledged before this time is in the backup.
    pub at_ms: i64,
    pub took_ms: u64,
    /// Step of the database schema to which the rows conform.
    pub step: u64,
    pub tables: Vec<StoredTable>,
    /// Number of blobs in the backup.
    pub blobs: u64,
    /// Total size of the blobs.
    pub blob_bytes: u64,
    /// SHA-256 of the list of blobs as it is stored.
    pub blob_list_sha256: String,
    /// Number of blobs that earlier backups had not stored yet.
    pub copied_blobs: u64,
    /// Total size of the copied blobs.
    pub copied_bytes: u64,
    pub sealing_key: SealingKey,
    /// SHA-256 of the stored file of the sealing key. `None` in backups of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key_sha256: Option<String>,
    /// True if rows, blobs and the key are encrypted.
    pub encrypted: bool,
}

/// The rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTable {
    pub name: String,
    /// The columns, in the order of a row's values.
    pub columns: Vec<String>,
    pub rows: u64,
    /// SHA-256 of the compressed rows before encryption.
    pub sha256: String,
}

/// Treatment of the key with which the secrets in the database are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealingKey {
    /// The backup contains the key.
    Included,
    /// The key comes from the setting `sealing_key`. The restored server needs the same setting.
    Set,
    /// The operator asked to leave the key out.
    LeftOut,
    /// There was no key: no secret was sealed yet.
    None,
}

impl Manifest {
    /// The folder of the backup with this id.
    pub(crate) fn folder(id: &str) -> String {
        format!("backups/{id}/")
    }

    /// The file that holds the manifest itself.
    pub(crate) fn file(id: &str) -> String {
        format!("backups/{id}/manifest.json")
    }

    /// The file with the rows of a table.
    pub(crate) fn rows(id: &str, table: &str) -> String {
        format!("backups/{id}/{table}.rows")
    }

    /// The file with the list of blobs.
    pub(crate) fn list(id: &str) -> String {
        format!("backups/{id}/blobs.list")
    }

    /// The file with the sealing key.
    pub(crate) fn key(id: &str) -> String {
        format!("backups/{id}/sealing.key")
    }

    /// The file that shows who made the backup.
    pub(crate) fn proof(id: &str) -> String {
        format!("backups/{id}/proof.json")
    }

    /// The heartbeat file that exists while the backup is being taken.
    pub(crate) fn under_way(id: &str) -> String {
        format!("backups/{id}/under-way")
    }

    /// Number of rows in all tables.
    #[must_use]
    pub fn rows_in_all(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// The stored form: JSON in one line, and its SHA-256 in another.
    pub(crate) fn to_text(&self) -> anyhow::Result<String> {
        let json = serde_json::to_string(self).context("failed to write JSON")?;
        let sha256 = Sha256(sha2::Sha256::digest(&json).into());
        Ok(format!("{json}\n{sha256}\n"))
    }

    /// Parses the stored form. It is an error if the SHA-256 does not match.
    pub(crate) fn from_text(text: &str) -> anyhow::Result<Manifest> {
        let (json, sha256) = text.trim_end().split_once('\n').context("the manifest is damaged")?;
        let found = Sha256(sha2::Sha256::digest(json).into());
        ensure!(
            found.to_string() == sha256,
            "the manifest is damaged: its SHA-256 should be {sha256} and is {found}"
        );
        serde_json::from_str(json).context("the manifest was written by a newer version of this program")
    }
}

/// The file with the bytes of a blob, which all backups share.
pub(crate) fn content(sha256: &Sha256) -> String {
    let name = sha256.to_string();
    format!("{CONTENT}{}/{name}", name.get(..2).unwrap_or_default())
}

/// Prefix of the paths that [`content`] returns.
pub(crate) const CONTENT: &str = "content/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_manifest_is_refused() {
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
