//! Removes old backups, and the blobs that no remaining backup names.
//!
//! The manifest is removed first, so that a partly removed backup does not count as complete. A
//! prune does not start while a backup is being taken, and a backup does not start during a prune.
//! Otherwise the new backup could rely on blobs that no complete backup names, and the prune would
//! remove them. Each of the two operations writes a heartbeat file, which tells the other operation
//! that it is running.

use std::collections::HashSet;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::{Sha256, now_ms};

use crate::catalog::{BackupEntry, BackupState, Heartbeat, PRUNING, has_recent_heartbeat, list};
use crate::manifest::{Manifest, content};
use crate::take::{AT_ONCE, stored};
use crate::vault::Vault;
use crate::verify::listed;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Rules for which backups stay. A backup stays if either rule keeps it; the newest always stays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// Number of newest backups to keep.
    pub last: Option<usize>,
    /// Maximum age in days of the backups to keep.
    pub days: Option<u32>,
}

/// Result of a prune or of its dry run.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Complete backups that were removed.
    pub removed: Vec<String>,
    /// Broken-off backups that were removed.
    pub broken_off: Vec<String>,
    /// Backups that were not removed.
    pub remaining: Vec<String>,
    /// Number of blobs that were removed.
    pub blobs: u64,
    /// Total size of the removed blobs' files.
    pub bytes: u64,
}

/// Removes the backups that no rule keeps; with `dry_run` only reports them. It is an error if a
/// backup is being taken, or if one is so damaged that its blobs are unknown.
pub async fn prune(vault: &Vault, keep: Keep, dry_run: bool) -> anyhow::Result<Pruned> {
    if dry_run {
        return prune_backups(vault, keep, dry_run).await;
    }
    if has_recent_heartbeat(&vault.location, PRUNING).await? {
        bail!("backups of this location are already being pruned");
    }
    let heartbeat = Heartbeat::begin(&vault.location, PRUNING.to_owned()).await?;
    let done = prune_backups(vault, keep, dry_run).await;
    heartbeat.end(&vault.location).await?;
    done
}

async fn prune_backups(vault: &Vault, keep: Keep, dry_run: bool) -> anyhow::Result<Pruned> {
    let found = list(vault).await?;
    let (remaining, gone) = apply_rules(&found, keep)?;
    let mut needed: HashSet<Sha256> = HashSet::new();
    for manifest in &remaining {
        let names = listed(vault, manifest).await;
        let names =
            names.with_context(|| format!("failed to read which blobs the backup {} needs", manifest.id))?;
        needed.extend(names.into_keys());
    }
    let mut pruned = Pruned {
        remaining: remaining.iter().map(|manifest| manifest.id.clone()).collect(),
        ..Pruned::default()
    };
    for backup in gone {
        if !dry_run {
            remove(vault, backup).await?;
        }
        let whole = backup.whole().is_some();
        if whole { &mut pruned.removed } else { &mut pruned.broken_off }.push(backup.id.clone());
    }
    let stored = stored(vault).await?;
    let unneeded: Vec<(Sha256, u64)> =
        stored.into_iter().filter(|(sha256, _)| !needed.contains(sha256)).collect();
    pruned.blobs = unneeded.len() as u64;
    pruned.bytes = unneeded.iter().map(|(_, bytes)| bytes).sum();
    if !dry_run {
        let removed =
            unneeded.iter().map(|(sha256, _)| async { vault.location.remove(&content(sha256)).await });
        stream::iter(removed).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        vault.location.tidy()?;
    }
    Ok(pruned)
}

/// Splits the backups into those that stay and those to remove.
fn apply_rules(found: &[BackupEntry], keep: Keep) -> anyhow::Result<(Vec<&Manifest>, Vec<&BackupEntry>)> {
    let (mut remaining, mut gone) = (Vec::new(), Vec::new());
    let since = keep.days.map(|days| now_ms().saturating_sub(i64::from(days).saturating_mul(DAY_MS)));
    let mut newer = 0;
    for backup in found.iter().rev() {
        match &backup.state {
            BackupState::Whole(manifest) => {
                let stays = newer == 0
                    || keep.last.is_some_and(|last| newer < last)
                    || since.is_some_and(|since| manifest.at_ms >= since);
                newer += 1;
                if stays { remaining.push(&**manifest) } else { gone.push(backup) }
            }
            BackupState::BrokenOff => gone.push(backup),
            BackupState::UnderWay => {
                bail!("the backup {} is being taken: prune when it is complete", backup.id)
            }
            BackupState::Damaged(why) => {
                bail!(
                    "the backup {} is damaged ({why}): restore its manifest or remove its folder, then prune again",
                    backup.id
                )
            }
        }
    }
    remaining.reverse();
    gone.reverse();
    Ok((remaining, gone))
}

async fn remove(vault: &Vault, backup: &BackupEntry) -> anyhow::Result<()> {
    let manifest = Manifest::file(&backup.id);
    vault.location.remove(&manifest).await?;
    for file in backup.files.iter().filter(|file| **file != manifest) {
        vault.location.remove(file).await?;
    }
    // Only a location in a folder has an empty folder left; a bucket has none.
    vault.location.remove_folder(&Manifest::folder(&backup.id)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::SealingKey;

    fn whole(id: &str, days_ago: i64) -> BackupEntry {
        let manifest = Manifest {
            id: id.to_owned(),
            program: String::new(),
            at_ms: now_ms() - days_ago * DAY_MS - 1000,
            took_ms: 0,
            step: 1,
            tables: Vec::new(),
            blobs: 0,
            blob_bytes: 0,
            blob_list_sha256: String::new(),
            copied_blobs: 0,
            copied_bytes: 0,
            sealing_key: SealingKey::None,
            sealing_key_sha256: None,
            encrypted: false,
        };
        BackupEntry { id: id.to_owned(), state: BackupState::Whole(Box::new(manifest)), files: Vec::new() }
    }

    #[test]
    fn count_and_age_each_keep_and_the_newest_always_stays() {
        let broken = BackupEntry { id: "b".to_owned(), state: BackupState::BrokenOff, files: Vec::new() };
        let found = vec![whole("a", 40), broken, whole("c", 20), whole("d", 10), whole("e", 3)];
        for (last, days, expected) in [
            (Some(2), None, "de"),
            (None, Some(15), "de"),
            (Some(1), Some(30), "cde"),
            (Some(3), Some(1), "cde"),
            (None, Some(1), "e"),
            (Some(9), None, "acde"),
            (None, None, "e"),
        ] {
            let (remaining, gone) = apply_rules(&found, Keep { last, days }).unwrap();
            let remaining: String = remaining.iter().map(|manifest| manifest.id.as_str()).collect();
            assert_eq!(remaining, expected, "{last:?} {days:?}");
            assert_eq!(gone.len() + remaining.len(), found.len());
        }
        for state in [BackupState::UnderWay, BackupState::Damaged(String::new())] {
            let found = vec![whole("a", 1), BackupEntry { id: "b".to_owned(), state, files: Vec::new() }];
            assert!(apply_rules(&found, Keep::default()).is_err());
        }
    }
}
