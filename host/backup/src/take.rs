//! Takes a backup: first the rows of one snapshot, then the blobs that the rows name and the
//! location lacks, then the manifest, which completes the backup.
//!
//! The snapshot lasts only until its rows are written to local files. Garbage collection removes no
//! blob from before the snapshot until the backup has ended.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use packhouse_store::{
    BackupSize, BlobHold, Sha256, Snapshot, SnapshotBlob, SnapshotTable, Store, StoreError, now_ms,
};
use sha2::Digest as _;

use crate::catalog::{Heartbeat, PRUNING, has_recent_heartbeat};
use crate::lines;
use crate::manifest::{CONTENT, Manifest, SealingKey, StoredTable, content};
use crate::proof::SigningKey;
use crate::vault::Vault;

/// Number of blobs that are copied concurrently.
pub(crate) const AT_ONCE: usize = 16;
/// Number of blobs that are looked up in the database at a time.
const PAGE: usize = 128;
/// Bytes of rows that are compressed at a time.
const ROWS: usize = 256 * 1024;
const LEVEL: i32 = 3;

/// Compressed rows in a file without a name, which disappears with the process.
struct Spool {
    file: zstd::Encoder<'static, File>,
    pending: Vec<u8>,
}

/// Takes a backup of a store and returns its manifest.
///
/// - `sealing_key`: the file of the sealing key, or the reason why it is not copied
/// - `signing_key`: the key with which the server signs, if it has one
/// - `scratch`: a folder for the rows until they are copied
///
/// After an error there is no backup. The next backup reuses the blobs that were copied.
pub async fn take(
    store: &Store,
    vault: &Arc<Vault>,
    sealing_key: Result<&Path, SealingKey>,
    signing_key: Option<&SigningKey>,
    scratch: &Path,
) -> anyhow::Result<Manifest> {
    let id = new_id();
    let heartbeat = Heartbeat::begin(&vault.location, Manifest::under_way(&id)).await?;
    ensure!(
        !has_recent_heartbeat(&vault.location, PRUNING).await?,
        "backups of this location are being pruned: try again when the prune is done"
    );
    let hold = store.hold_blobs().await.context("failed to protect blobs from garbage collection")?;
    store
        .backup_begins(&hold, &id, vault.location.display_name())
        .await
        .context("failed to write to the database")?;
    let taken = match take_held(store, vault, &hold, &id, sealing_key, scratch).await {
        Ok(manifest) => finish(vault, &manifest, signing_key).await.map(|()| manifest),
        Err(error) => Err(error),
    };
    let outcome = match &taken {
        Ok(manifest) => Ok(BackupSize {
            rows: manifest.rows_in_all(),
            blobs: manifest.blobs,
            blob_bytes: manifest.blob_bytes,
            copied_bytes: manifest.copied_bytes,
        }),
        Err(error) => Err(format!("{error:#}")),
    };
    if let Err(error) = store.backup_ends(&id, outcome).await {
        tracing::warn!(%error, "could not record the outcome of the backup in the database");
    }
    hold.release().await;
    let manifest = taken?;
    if let Err(error) = heartbeat.end(&vault.location).await {
        tracing::warn!(%error, "backup complete, but its heartbeat file could not be removed");
    }
    Ok(manifest)
}

/// Takes the backup. Meanwhile garbage collection removes no blob.
async fn take_held(
    store: &Store,
    vault: &Arc<Vault>,
    hold: &BlobHold,
    id: &str,
    sealing_key: Result<&Path, SealingKey>,
    scratch: &Path,
) -> anyhow::Result<Manifest> {
    let begun = Instant::now();
    let mut snapshot = store.snapshot().await.context("failed to read the database")?;
    let (at_ms, step) = (snapshot.at_ms(), snapshot.step());
    let spooled = spool_all(&mut snapshot, scratch).await?;
    let blobs = snapshot.blobs().await.context("failed to read the list of blobs")?;
    snapshot.end().await;
    let mut tables = Vec::with_capacity(spooled.len());
    for (table, rows, file) in spooled {
        tables.push(store_rows(vault, id, table, rows, file).await?);
    }
    let (copied_blobs, copied_bytes) = copy_missing(store, vault, &blobs).await?;
    ensure!(
        !hold.is_lost(),
        "the database was unreachable for so long that garbage collection may have removed blobs: try again"
    );
    let (sealing_key, sealing_key_sha256) = store_key(vault, id, sealing_key).await?;
    let blob_list_sha256 = store_list(vault, id, &blobs, scratch).await?;
    Ok(Manifest {
        id: id.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        at_ms,
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        step,
        tables,
        blobs: blobs.len() as u64,
        blob_bytes: blobs.iter().map(|blob| blob.size).sum(),
        blob_list_sha256,
        copied_blobs,
        copied_bytes,
        sealing_key,
        sealing_key_sha256,
        encrypted: vault.is_encrypted(),
    })
}

/// Writes the proof and the manifest, which completes the backup.
async fn finish(vault: &Vault, manifest: &Manifest, key: Option<&SigningKey>) -> anyhow::Result<()> {
    let text = manifest.to_text()?.into_bytes();
    vault.prove(&manifest.id, &text, key).await?;
    vault.location.sync()?;
    vault.location.write(&Manifest::file(&manifest.id), text).await?;
    vault.location.sync()
}

async fn spool_all(
    snapshot: &mut Snapshot,
    scratch: &Path,
) -> anyhow::Result<Vec<(SnapshotTable, u64, File)>> {
    let mut spooled = Vec::new();
    for table in snapshot.tables() {
        let mut spool = Spool::new(scratch)?;
        let mut count = 0;
        {
            let mut rows = snapshot.rows(&table)?;
            while let Some(row) =
                rows.try_next().await.with_context(|| format!("failed to read the table {}", table.name))?
            {
                lines::write(row, &mut spool.pending)?;
                spool.compress(ROWS)?;
                count += 1;
            }
        }
        spooled.push((table, count, spool.finish()?));
    }
    Ok(spooled)
}

impl Spool {
    fn new(scratch: &Path) -> anyhow::Result<Spool> {
        let file = tempfile::tempfile_in(scratch)
            .with_context(|| format!("failed to make a file in {}", scratch.display()))?;
        let file = zstd::Encoder::new(file, LEVEL).context("failed to compress")?;
        Ok(Spool { file, pending: Vec::new() })
    }

    /// Compresses the pending bytes if there are at least `least` of them.
    fn compress(&mut self, least: usize) -> anyhow::Result<()> {
        if self.pending.len() >= least {
            self.file.write_all(&self.pending).context("failed to write rows to a local file")?;
            self.pending.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<File> {
        self.compress(0)?;
        let mut file = self.file.finish().context("failed to write rows to a local file")?;
        file.rewind()?;
        Ok(file)
    }
}

async fn store_rows(
    vault: &Vault,
    id: &str,
    table: SnapshotTable,
    rows: u64,
    file: File,
) -> anyhow::Result<StoredTable> {
    let (_, sha256) = vault.put(&Manifest::rows(id, &table.name), pieces(file), None).await?;
    Ok(StoredTable { name: table.name, columns: table.columns, rows, sha256: sha256.to_string() })
}

/// Writes the list of blobs and returns its digest. The list is not encrypted, because the names of
/// the blobs' files show the digests anyway.
async fn store_list(
    vault: &Vault,
    id: &str,
    blobs: &[SnapshotBlob],
    scratch: &Path,
) -> anyhow::Result<String> {
    let mut spool = Spool::new(scratch)?;
    for blob in blobs {
        writeln!(spool.pending, "{} {}", blob.sha256, blob.size)?;
        spool.compress(ROWS)?;
    }
    let mut text = Vec::new();
    spool.finish()?.read_to_end(&mut text)?;
    let sha256 = Sha256(sha2::Sha256::digest(&text).into());
    vault.location.write(&Manifest::list(id), text).await?;
    Ok(sha256.to_string())
}

/// Stores the sealing key. Returns its treatment and the digest of its stored file.
async fn store_key(
    vault: &Vault,
    id: &str,
    key: Result<&Path, SealingKey>,
) -> anyhow::Result<(SealingKey, Option<String>)> {
    let file = match key {
        Ok(file) => file,
        Err(why) => return Ok((why, None)),
    };
    match std::fs::read_to_string(file) {
        Ok(key) => {
            let key = stream::iter([anyhow::Ok(Bytes::from(key))]);
            vault.put(&Manifest::key(id), key, None).await?;
            // The digest covers the stored, possibly encrypted file: a digest of the key itself
            // would let a reader test guesses of a weak key.
            let stored = vault.location.read(&Manifest::key(id)).await?.context("the key was not stored")?;
            Ok((SealingKey::Included, Some(Sha256::of(&stored).to_string())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((SealingKey::None, None)),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// Copies the blobs that the location lacks. Returns their number and total size.
async fn copy_missing(
    store: &Store,
    vault: &Arc<Vault>,
    blobs: &[SnapshotBlob],
) -> anyhow::Result<(u64, u64)> {
    let there = stored(vault).await?;
    let is_missing = |blob: &&SnapshotBlob| match there.get(&blob.sha256) {
        None => true,
        // A truncated file is copied again. Encrypted files are longer than their blobs, so their
        // lengths cannot be compared.
        Some(bytes) => !vault.is_encrypted() && *bytes != blob.size,
    };
    let missing: Vec<SnapshotBlob> = blobs.iter().filter(is_missing).copied().collect();
    for page in missing.chunks(PAGE) {
        let bytes = store.blob_bytes(page).await.map_err(of_storage)?;
        let copied = bytes.into_iter().map(|(blob, bytes)| {
            let copied = tokio::spawn(copy(Arc::clone(vault), blob, bytes));
            async move { copied.await.context("the copy of a blob failed")? }
        });
        stream::iter(copied).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    }
    Ok((missing.len() as u64, missing.iter().map(|blob| blob.size).sum()))
}

/// The blobs that a location has, with the sizes of their files.
pub(crate) async fn stored(vault: &Vault) -> anyhow::Result<HashMap<Sha256, u64>> {
    let listed = vault.location.list(CONTENT).await?;
    let digest = |path: &str| path.rsplit('/').next().and_then(|name| name.parse().ok());
    Ok(listed.into_iter().filter_map(|entry| Some((digest(&entry.path)?, entry.bytes))).collect())
}

async fn copy(
    vault: Arc<Vault>,
    blob: SnapshotBlob,
    bytes: BoxStream<'static, Result<Bytes, StoreError>>,
) -> anyhow::Result<()> {
    let path = content(&blob.sha256);
    let done = vault.put(&path, bytes.map_err(of_storage), Some(blob.sha256)).await;
    done.with_context(|| {
        format!(
            "failed to copy the blob sha256:{} (`packhouse scrub` lists the records that name it)",
            blob.sha256
        )
    })?;
    Ok(())
}

fn of_storage(error: StoreError) -> anyhow::Error {
    anyhow::Error::new(error).context("failed to read a blob")
}

fn pieces(file: File) -> BoxStream<'static, anyhow::Result<Bytes>> {
    let next = |mut file: File| async move {
        let mut piece = Vec::new();
        let read = (&mut file).take(ROWS as u64).read_to_end(&mut piece)?;
        Ok((read > 0).then(|| (Bytes::from(piece), file)))
    };
    stream::try_unfold(file, next).boxed()
}

/// A new id such as `20261231T235959.123Z-1a2b3c4d`. Ids sort by time.
fn new_id() -> String {
    let now = now_ms();
    let seconds = now.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86400), seconds.rem_euclid(86400));
    let (year, month, day) = date(days);
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}.{:03}Z-{:08x}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        now.rem_euclid(1000),
        rand::random::<u32>()
    )
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant's `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_453), (2025, 12, 31));
        assert_eq!(date(20_454), (2026, 1, 1));
        let (one, two) = (new_id(), new_id());
        assert!(one.len() == 29 && one != two, "{one} {two}");
    }
}
