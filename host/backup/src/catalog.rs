//! Which backups a place has, and which were broken off.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::now_ms;
use tokio::task::JoinHandle;

use crate::boxed;
use crate::manifest::Manifest;
use crate::place::Place;
use crate::vault::Vault;

/// What is there before a prune removes anything, so that no backup begins that relies on it.
pub(crate) const PRUNING: &str = "pruning";
/// Who has said nothing for so long is gone, in ms. Who is there says so once a minute.
const GONE: i64 = 15 * 60 * 1000;
/// Manifests that are read at one time.
const AT_ONCE: usize = 16;
/// How often a sign of life is renewed.
const LIVES: Duration = Duration::from_mins(1);

/// A backup, or what is left of one.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it is known by.
    pub id: String,
    /// How it is.
    pub state: State,
    /// Its own files, without the blobs that it shares with others.
    pub(crate) files: Vec<String>,
}

/// How a backup is.
#[derive(Clone, Debug)]
pub enum State {
    /// It is whole: what its manifest says is there, unless it was damaged afterwards.
    Whole(Box<Manifest>),
    /// Its manifest is there and cannot be used. Says why.
    Damaged(String),
    /// It is being taken.
    UnderWay,
    /// It was broken off: there is nothing to be restored.
    BrokenOff,
}

/// The backups of a place, the oldest first.
#[boxed]
pub async fn list(vault: &Vault) -> anyhow::Result<Vec<Found>> {
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in vault.place.list("backups/").await? {
        let id = entry.path.strip_prefix("backups/").and_then(|rest| rest.split_once('/'));
        if let Some((id, _)) = id {
            by_id.entry(id.to_owned()).or_default().push(entry.path);
        }
    }
    let found = by_id.into_iter().map(|(id, files)| async move {
        let state = state(&vault.place, &id, &files).await?;
        anyhow::Ok(Found { id, state, files })
    });
    stream::iter(found).buffered(AT_ONCE).try_collect().await
}

impl Found {
    /// The manifest of one that is whole.
    #[must_use]
    pub fn whole(&self) -> Option<&Manifest> {
        match &self.state {
            State::Whole(manifest) => Some(manifest),
            _ => None,
        }
    }
}

/// The manifest of the backup of this id, or of the newest. An error where it is not whole.
pub(crate) async fn pick(vault: &Vault, id: Option<&str>) -> anyhow::Result<Manifest> {
    let found = list(vault).await?;
    let Some(id) = id else {
        let newest = found.iter().rev().find_map(Found::whole);
        return newest.cloned().context("there is no backup at this place that is whole");
    };
    let backup = found.iter().find(|backup| backup.id == id);
    match backup.map(|backup| &backup.state) {
        Some(State::Whole(manifest)) => Ok((**manifest).clone()),
        Some(State::Damaged(why)) => bail!("the backup {id} is damaged: {why}"),
        Some(State::UnderWay) => bail!("the backup {id} is still being taken"),
        Some(State::BrokenOff) => {
            bail!("the backup {id} was broken off and is none: there is nothing to be restored")
        }
        None => bail!("there is no backup {id} at this place; `packhouse backup list` names them"),
    }
}

async fn state(place: &Place, id: &str, files: &[String]) -> anyhow::Result<State> {
    if files.contains(&Manifest::file(id)) {
        let text = place.read(&Manifest::file(id)).await?.unwrap_or_default();
        return Ok(match Manifest::from_text(&String::from_utf8_lossy(&text)) {
            Ok(manifest) if manifest.id == id => State::Whole(Box::new(manifest)),
            Ok(manifest) => State::Damaged(format!("its manifest is that of {}", manifest.id)),
            Err(error) => State::Damaged(error.to_string()),
        });
    }
    let alive = is_alive(place, &Manifest::under_way(id)).await?;
    Ok(if alive { State::UnderWay } else { State::BrokenOff })
}

/// Whether whoever writes this sign of life did so lately.
pub(crate) async fn is_alive(place: &Place, sign: &str) -> anyhow::Result<bool> {
    let Some(text) = place.read(sign).await? else { return Ok(false) };
    let at: i64 = String::from_utf8_lossy(&text).trim().parse().unwrap_or(0);
    Ok(now_ms().saturating_sub(at) < GONE)
}

/// A sign of life at a place, renewed once a minute: that a backup is being taken there, or that backups are being pruned.
pub(crate) struct Alive {
    sign: String,
    saying: JoinHandle<()>,
}

impl Alive {
    /// Shows it from now on.
    pub(crate) async fn begin(place: &Place, sign: String) -> anyhow::Result<Alive> {
        live(place, &sign).await?;
        let (place, told) = (place.clone(), sign.clone());
        let saying = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LIVES).await;
                if let Err(error) = live(&place, &told).await {
                    tracing::warn!(%error, "the place of backups was not told that this goes on");
                }
            }
        });
        Ok(Alive { sign, saying })
    }

    /// Takes it away. One that stays counts for some minutes more.
    pub(crate) async fn end(self, place: &Place) -> anyhow::Result<()> {
        self.saying.abort();
        place.remove(&self.sign).await
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.saying.abort();
    }
}

async fn live(place: &Place, sign: &str) -> anyhow::Result<()> {
    place.write(sign, format!("{}\n", now_ms()).into_bytes()).await
}
