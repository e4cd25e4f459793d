//! Old backups are removed, and with them the blobs that none of the others names.
//!
//! A manifest goes first: what is half removed is no backup any more. Between a prune and a backup that is being taken neither begins
//! while the other says that it is there: the backup may rely on blobs that no whole backup names.

use std::collections::HashSet;

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::{Sha256, now_ms};

use crate::catalog::{Alive, Found, PRUNING, State, is_alive, list};
use crate::manifest::{Manifest, content};
use crate::take::{AT_ONCE, stored};
use crate::vault::Vault;
use crate::verify::listed;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Which backups stay: those that any of these keeps, and the newest in any case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// So many of the newest.
    pub last: Option<usize>,
    /// Those that are so many days old at most.
    pub days: Option<u32>,
}

/// What a prune removed, or would remove.
#[derive(Clone, Debug, Default)]
pub struct Pruned {
    /// Backups that were whole.
    pub removed: Vec<String>,
    /// Those that had been broken off.
    pub broken_off: Vec<String>,
    /// Those that stay.
    pub kept: Vec<String>,
    /// Blobs that nothing names any more.
    pub blobs: u64,
    /// The bytes of their files.
    pub bytes: u64,
}

/// Removes the backups that are not kept; with `only_tell` nothing. An error where a backup is being taken, and where one is damaged so
/// that it is not known what it needs.
pub async fn prune(vault: &Vault, keep: Keep, only_tell: bool) -> anyhow::Result<Pruned> {
    if only_tell {
        return prune_alone(vault, keep, only_tell).await;
    }
    if is_alive(&vault.place, PRUNING).await? {
        bail!("backups of this place are being pruned already");
    }
    let alive = Alive::begin(&vault.place, PRUNING.to_owned()).await?;
    let done = prune_alone(vault, keep, only_tell).await;
    alive.end(&vault.place).await?;
    done
}

async fn prune_alone(vault: &Vault, keep: Keep, only_tell: bool) -> anyhow::Result<Pruned> {
    let found = list(vault).await?;
    let (kept, gone) = judged(&found, keep)?;
    let mut needed: HashSet<Sha256> = HashSet::new();
    for manifest in &kept {
        let names = listed(vault, manifest).await;
        let names = names.with_context(|| format!("what the backup {} needs is not known", manifest.id))?;
        needed.extend(names.into_keys());
    }
    let mut pruned =
        Pruned { kept: kept.iter().map(|manifest| manifest.id.clone()).collect(), ..Pruned::default() };
    for backup in gone {
        if !only_tell {
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
    if !only_tell {
        let removed = unneeded.iter().map(|(sha256, _)| async { vault.place.remove(&content(sha256)).await });
        stream::iter(removed).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        vault.place.tidy()?;
    }
    Ok(pruned)
}

/// The backups that stay, and those that go.
fn judged(found: &[Found], keep: Keep) -> anyhow::Result<(Vec<&Manifest>, Vec<&Found>)> {
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    let since = keep.days.map(|days| now_ms().saturating_sub(i64::from(days).saturating_mul(DAY_MS)));
    let mut newer = 0;
    for backup in found.iter().rev() {
        match &backup.state {
            State::Whole(manifest) => {
                let stays = newer == 0
                    || keep.last.is_some_and(|last| newer < last)
                    || since.is_some_and(|since| manifest.at_ms >= since);
                newer += 1;
                if stays { kept.push(&**manifest) } else { gone.push(backup) }
            }
            State::BrokenOff => gone.push(backup),
            State::UnderWay => bail!("the backup {} is being taken: prune when that is done", backup.id),
            State::Damaged(why) => {
                bail!(
                    "the backup {} is damaged ({why}): restore its manifest, or remove its folder, and prune then",
                    backup.id
                )
            }
        }
    }
    kept.reverse();
    gone.reverse();
    Ok((kept, gone))
}

async fn remove(vault: &Vault, backup: &Found) -> anyhow::Result<()> {
    let manifest = Manifest::file(&backup.id);
    vault.place.remove(&manifest).await?;
    for file in backup.files.iter().filter(|file| **file != manifest) {
        vault.place.remove(file).await?;
    }
    // A folder that is left empty is of a folder alone.
    vault.place.remove_folder(&Manifest::folder(&backup.id)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::SealingKey;

    fn whole(id: &str, days_ago: i64) -> Found {
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
        Found { id: id.to_owned(), state: State::Whole(Box::new(manifest)), files: Vec::new() }
    }

    #[test]
    fn count_and_age_each_keep_and_the_newest_always_stays() {
        let broken = Found { id: "b".to_owned(), state: State::BrokenOff, files: Vec::new() };
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
            let (kept, gone) = judged(&found, Keep { last, days }).unwrap();
            let kept: String = kept.iter().map(|manifest| manifest.id.as_str()).collect();
            assert_eq!(kept, expected, "{last:?} {days:?}");
            assert_eq!(gone.len() + kept.len(), found.len());
        }
        for state in [State::UnderWay, State::Damaged(String::new())] {
            let found = vec![whole("a", 1), Found { id: "b".to_owned(), state, files: Vec::new() }];
            assert!(judged(&found, Keep::default()).is_err());
        }
    }
}
