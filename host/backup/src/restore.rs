//! Restores a backup into an empty database and storage. The whole backup is verified before
//! anything is written, so that a damaged backup changes nothing.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::{Blob, Cell, Restoring, Sha256, Store, StoreConfig};

use crate::boxed;
use crate::catalog::pick;
use crate::manifest::{Manifest, SealingKey, StoredTable, content};
use crate::take::AT_ONCE;
use crate::vault::Vault;
use crate::verify::{TableRows, Verified, digest_of, read_all, stored_key};

/// Number of rows that are written at a time.
const ROWS: usize = 500;
/// Number of blobs whose rows are written at a time.
const BLOBS: usize = 64;
/// The table of blobs, whose rows are written together with the bytes.
const TABLE: &str = "blobs";

/// Outcome of a successful restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The manifest of the restored backup.
    pub manifest: Manifest,
    /// Number of blobs that an earlier, broken-off restore of the same backup had stored already.
    pub blobs_there: u64,
}

/// Restores the backup with this id, or the newest one, into the empty database and storage of this
/// configuration. `sealing_key` is the file to write the sealing key to; `None` if the settings
/// contain a key. A restore that was broken off is continued. The error says what is wrong with the
/// backup or with the target.
#[boxed]
pub async fn restore(
    vault: &Arc<Vault>,
    id: Option<&str>,
    config: StoreConfig,
    sealing_key: Option<&Path>,
) -> anyhow::Result<Restored> {
    let id = pick(vault, id).await?.id;
    let proven = vault.proven(&id).await;
    let manifest = proven.with_context(|| format!("the backup {id} was refused; nothing was written"))?;
    let mut verified = Verified::default();
    read_all(vault, std::slice::from_ref(&manifest), &mut verified).await?;
    if !verified.damaged.is_empty() {
        bail!("the backup {} is damaged; nothing was written:\n{}", manifest.id, verified.damaged.join("\n"));
    }
    let key = own_key(vault, &manifest, sealing_key).await?;
    let restoring =
        Restoring::begin(config, &manifest.id, manifest.step).await.context("failed to begin the restore")?;
    let done = fill(vault, &manifest, &restoring, key).await;
    restoring.close().await;
    let blobs_there = done?;
    Ok(Restored { manifest, blobs_there })
}

async fn fill(
    vault: &Arc<Vault>,
    manifest: &Manifest,
    restoring: &Restoring,
    key: Option<(&Path, Vec<u8>)>,
) -> anyhow::Result<u64> {
    let there = restoring.stored_blobs().await.context("failed to read the database")?;
    let blobs = table(manifest, TABLE)?;
    put_blobs(vault, manifest, restoring, blobs, &there).await?;
    if let Some((file, key)) = key {
        write_key(file, &key)?;
    }
    let mut rows = restoring.rows().await.context("failed to begin writing rows")?;
    let known: HashSet<&str> = restoring.tables().iter().map(|table| table.name.as_str()).collect();
    if let Some(unknown) = manifest.tables.iter().find(|table| !known.contains(table.name.as_str())) {
        bail!("the backup has a table that this program does not know: {}", unknown.name);
    }
    for expected in restoring.tables().iter().filter(|expected| expected.name != TABLE) {
        let table = table(manifest, &expected.name)?;
        let mut read = TableRows::open(vault, manifest, table).await?;
        loop {
            let mut some = Vec::with_capacity(ROWS);
            while let Some(row) = read.next()? {
                some.push(row);
                if some.len() == ROWS {
                    break;
                }
            }
            if some.is_empty() {
                break;
            }
            let added = rows.add(&table.name, &table.columns, some).await;
            added.with_context(|| format!("failed to write the table {}", table.name))?;
        }
    }
    rows.finish().await.context("failed to finish the restore")?;
    Ok(there.len() as u64)
}

/// The manifest's entry for a table.
fn table<'a>(manifest: &'a Manifest, name: &str) -> anyhow::Result<&'a StoredTable> {
    let found = manifest.tables.iter().find(|table| table.name == name);
    found.with_context(|| format!("the backup has no table {name}"))
}

async fn put_blobs(
    vault: &Arc<Vault>,
    manifest: &Manifest,
    restoring: &Restoring,
    table: &StoredTable,
    there: &HashSet<Sha256>,
) -> anyhow::Result<()> {
    let column = |name: &str| table.columns.iter().position(|column| column == name);
    let (Some(digest), Some(size)) = (column("sha256"), column("size")) else {
        bail!("the backup's table of blobs lacks a column")
    };
    let mut rows = TableRows::open(vault, manifest, table).await?;
    loop {
        let mut some = Vec::with_capacity(BLOBS);
        while let Some(row) = rows.next()? {
            let sha256 = digest_of(&row, digest)?;
            let Some(Cell::Int(bytes)) = row.get(size) else { bail!("a blob has no size") };
            let bytes = u64::try_from(*bytes).context("a blob has a negative size")?;
            if !there.contains(&sha256) {
                some.push((row, sha256, bytes));
            }
            if some.len() == BLOBS {
                break;
            }
        }
        if some.is_empty() {
            return Ok(());
        }
        let fetched = some.into_iter().map(|(row, sha256, bytes)| {
            let fetched = tokio::spawn(fetch(Arc::clone(vault), restoring.store().clone(), sha256, bytes));
            async move { anyhow::Ok((row, fetched.await.context("the copy of a blob failed")??)) }
        });
        let fetched = stream::iter(fetched).buffered(AT_ONCE).try_collect().await?;
        restoring.keep(&table.columns, fetched).await.context("failed to store blobs")?;
    }
}

async fn fetch(vault: Arc<Vault>, store: Store, sha256: Sha256, bytes: u64) -> anyhow::Result<Blob> {
    let mut stager = store.stage(&[], bytes);
    let mut pieces = vault.get(&content(&sha256)).await?;
    while let Some(piece) = pieces.try_next().await? {
        stager.write(piece).await.context("failed to write a blob")?;
    }
    let blob = stager.finish().await.context("failed to write a blob")?;
    let found = blob.sha256().await.context("failed to write a blob")?;
    ensure!(
        found == sha256 && blob.size() == bytes,
        "the blob sha256:{sha256} was changed after it was verified"
    );
    Ok(blob)
}

/// The sealing key to write, and its file; `None` if no key has to be written. It is an error if
/// the file holds another key.
async fn own_key<'a>(
    vault: &Vault,
    manifest: &Manifest,
    file: Option<&'a Path>,
) -> anyhow::Result<Option<(&'a Path, Vec<u8>)>> {
    let (Some(file), SealingKey::Included) = (file, manifest.sealing_key) else { return Ok(None) };
    let key = stored_key(vault, manifest).await?;
    match fs::read_to_string(file) {
        Ok(there) if there.as_bytes() == key => Ok(None),
        Ok(_) => bail!("{} holds another key: restore into an empty data folder", file.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some((file, key))),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// Writes the key to a temporary file and renames this file, so that the key's file is complete or
/// missing.
fn write_key(file: &Path, key: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("failed to write {}", file.display());
    let beside = file.with_extension("key-restored");
    let mut written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .with_context(failed)?;
    written.write_all(key).and_then(|()| written.sync_all()).with_context(failed)?;
    fs::rename(&beside, file).with_context(failed)?;
    let folder = file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all());
    folder.with_context(failed)
}
