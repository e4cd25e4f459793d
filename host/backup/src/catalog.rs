//! Lists the backups of a location, complete or not, and maintains heartbeat files.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::now_ms;
use tokio::task::JoinHandle;

use crate::boxed;
use crate::location::BackupLocation;
use crate::manifest::Manifest;
use crate::vault::Vault;

/// Heartbeat file of a prune. It exists before the prune removes anything, so that no new backup
/// relies on a blob that is about to be removed.
pub(crate) const PRUNING: &str = "pruning";
/// Age in ms at which a heartbeat counts as abandoned.
const HEARTBEAT_EXPIRY_MS: i64 = 15 * 60 * 1000;
/// Number of manifests that are read concurrently.
const AT_ONCE: usize = 16;
/// Interval at which a heartbeat is renewed.
const HEARTBEAT_INTERVAL: Duration = Duration::from_mins(1);

/// A backup, complete or not.
#[derive(Clone, Debug)]
pub struct BackupEntry {
    /// The name of its folder in the location.
    pub id: String,
    pub state: BackupState,
    /// Its own files, without the blobs that it shares with other backups.
    pub(crate) files: Vec<String>,
}

/// State of a backup, as far as its manifest and its heartbeat show it.
#[derive(Clone, Debug)]
pub enum BackupState {
    /// Complete: everything that the manifest lists was written. It may have been damaged since.
    Whole(Box<Manifest>),
    /// The manifest exists but cannot be used, for this reason.
    Damaged(String),
    /// The backup is being taken.
    UnderWay,
    /// The backup was interrupted before its manifest was written. It cannot be restored.
    BrokenOff,
}

/// Lists the backups of a location, the oldest first.
#[boxed]
pub async fn list(vault: &Vault) -> anyhow::Result<Vec<BackupEntry>> {
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in vault.location.list("backups/").await? {
        let id = entry.path.strip_prefix("backups/").and_then(|rest| rest.split_once('/'));
        if let Some((id, _)) = id {
            by_id.entry(id.to_owned()).or_default().push(entry.path);
        }
    }
    let found = by_id.into_iter().map(|(id, files)| async move {
        let state = state(&vault.location, &id, &files).await?;
        anyhow::Ok(BackupEntry { id, state, files })
    });
    stream::iter(found).buffered(AT_ONCE).try_collect().await
}

impl BackupEntry {
    /// The manifest of a complete backup.
    #[must_use]
    pub fn whole(&self) -> Option<&Manifest> {
        match &self.state {
            BackupState::Whole(manifest) => Some(manifest),
            _ => None,
        }
    }
}

/// Returns the manifest of the backup with this id, or of the newest complete one. It is an error
/// if there is no such backup or if it is not complete.
pub(crate) async fn pick(vault: &Vault, id: Option<&str>) -> anyhow::Result<Manifest> {
    let found = list(vault).await?;
    let Some(id) = id else {
        let newest = found.iter().rev().find_map(BackupEntry::whole);
        return newest.cloned().context("there is no complete backup at this location");
    };
    let backup = found.iter().find(|backup| backup.id == id);
    match backup.map(|backup| &backup.state) {
        Some(BackupState::Whole(manifest)) => Ok((**manifest).clone()),
        Some(BackupState::Damaged(why)) => bail!("the backup {id} is damaged: {why}"),
        Some(BackupState::UnderWay) => bail!("the backup {id} is still being taken"),
        Some(BackupState::BrokenOff) => {
            bail!("the backup {id} was interrupted before it was complete and cannot be restored")
        }
        None => bail!(
            "there is no backup {id} at this location; `packhouse backup list` prints the existing ones"
        ),
    }
}

async fn state(location: &BackupLocation, id: &str, files: &[String]) -> anyhow::Result<BackupState> {
    if files.contains(&Manifest::file(id)) {
        let text = location.read(&Manifest::file(id)).await?.unwrap_or_default();
        return Ok(match Manifest::from_text(&String::from_utf8_lossy(&text)) {
            Ok(manifest) if manifest.id == id => BackupState::Whole(Box::new(manifest)),
            Ok(manifest) => {
                BackupState::Damaged(format!("its manifest belongs to the backup {}", manifest.id))
            }
            Err(error) => BackupState::Damaged(error.to_string()),
        });
    }
    let alive = has_recent_heartbeat(location, &Manifest::under_way(id)).await?;
    Ok(if alive { BackupState::UnderWay } else { BackupState::BrokenOff })
}

/// Reports whether this heartbeat file was renewed recently.
pub(crate) async fn has_recent_heartbeat(location: &BackupLocation, path: &str) -> anyhow::Result<bool> {
    let Some(text) = location.read(path).await? else { return Ok(false) };
    let at: i64 = String::from_utf8_lossy(&text).trim().parse().unwrap_or(0);
    Ok(now_ms().saturating_sub(at) < HEARTBEAT_EXPIRY_MS)
}

/// A heartbeat file in a location, renewed once a minute. It shows other processes that a backup or
/// a prune is under way in this location.
pub(crate) struct Heartbeat {
    path: String,
    task: JoinHandle<()>,
}

impl Heartbeat {
    /// Writes the file and keeps renewing it.
    pub(crate) async fn begin(location: &BackupLocation, path: String) -> anyhow::Result<Heartbeat> {
        beat(location, &path).await?;
        let (location, renewed) = (location.clone(), path.clone());
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
                if let Err(error) = beat(&location, &renewed).await {
                    tracing::warn!(%error, "could not update the heartbeat in the backup location");
                }
            }
        });
        Ok(Heartbeat { path, task })
    }

    /// Removes the file. If that fails, the heartbeat counts as recent until it expires.
    pub(crate) async fn end(self, location: &BackupLocation) -> anyhow::Result<()> {
        self.task.abort();
        location.remove(&self.path).await
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(location: &BackupLocation, path: &str) -> anyhow::Result<()> {
    location.write(path, format!("{}\n", now_ms()).into_bytes()).await
}
