//! Verifies backups: reads all their files and compares the digests with those that were recorded.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::sync::Arc;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use packhouse_store::{Cell, Sha256};
use sha2::Digest as _;

use crate::boxed;
use crate::catalog::{BackupState, list, pick};
use crate::lines;
use crate::manifest::{Manifest, SealingKey, StoredTable, content};
use crate::take::AT_ONCE;
use crate::vault::Vault;

/// Upper bound for the length of a line in a list of blobs.
const LINE: usize = 1024;

/// Outcome of a verification, with the damage that it found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Number of backups that were read.
    pub backups: u64,
    /// Number of blobs that were read.
    pub blobs: u64,
    /// Total size of the intact blobs.
    pub bytes: u64,
    /// One message for each file that is damaged or missing.
    pub damaged: Vec<String>,
}

/// Verifies the backup with this id, or all of them. A backup counts as damaged if its proof does
/// not meet the reader's demand. It is an error if nothing could be verified, as when the location
/// is unreachable.
#[boxed]
pub async fn verify(vault: &Arc<Vault>, id: Option<&str>) -> anyhow::Result<Verified> {
    let mut verified = Verified::default();
    let mut manifests = Vec::new();
    if let Some(id) = id {
        manifests.push(vault.proven(&pick(vault, Some(id)).await?.id).await?);
    } else {
        for found in list(vault).await? {
            match found.state {
                BackupState::Whole(_) => match vault.proven(&found.id).await {
                    Ok(manifest) => manifests.push(manifest),
                    Err(error) => verified.damaged.push(format!("the backup {}: {error:#}", found.id)),
                },
                BackupState::Damaged(why) => verified.damaged.push(format!("the backup {}: {why}", found.id)),
                BackupState::UnderWay | BackupState::BrokenOff => {}
            }
        }
        ensure!(
            !manifests.is_empty() || !verified.damaged.is_empty(),
            "there is no complete backup at this location"
        );
    }
    read_all(vault, &manifests, &mut verified).await?;
    Ok(verified)
}

/// Reads all files of these backups.
pub(crate) async fn read_all(
    vault: &Arc<Vault>,
    manifests: &[Manifest],
    verified: &mut Verified,
) -> anyhow::Result<()> {
    let mut named: BTreeMap<Sha256, (u64, Vec<usize>)> = BTreeMap::new();
    for (number, manifest) in manifests.iter().enumerate() {
        verified.backups += 1;
        match own_files(vault, manifest).await {
            Ok(blobs) => {
                for (sha256, size) in blobs {
                    named.entry(sha256).or_insert_with(|| (size, Vec::new())).1.push(number);
                }
            }
            Err(error) => verified.damaged.push(format!("the backup {}: {error:#}", manifest.id)),
        }
    }
    let ids: Vec<&str> = manifests.iter().map(|manifest| manifest.id.as_str()).collect();
    read_blobs(vault, named, &ids, verified).await
}

/// Reads a backup's own files. Returns the blobs that it names, with their sizes.
pub(crate) async fn own_files(vault: &Vault, manifest: &Manifest) -> anyhow::Result<HashMap<Sha256, u64>> {
    let blobs = listed(vault, manifest).await?;
    for table in &manifest.tables {
        let mut rows = TableRows::open(vault, manifest, table).await?;
        let digest = table.columns.iter().position(|column| column == "sha256");
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            if let (Some(at), "blobs") = (digest, table.name.as_str()) {
                let sha256 = digest_of(&row, at)?;
                ensure!(blobs.contains_key(&sha256), "the blob sha256:{sha256} is not in its list");
            }
        }
        ensure!(count == table.rows, "{} has {count} rows and should have {}", table.name, table.rows);
    }
    if manifest.sealing_key == SealingKey::Included {
        stored_key(vault, manifest).await?;
    }
    Ok(blobs)
}

/// The sealing key that a backup holds. It is an error if its digest differs from the manifest's.
pub(crate) async fn stored_key(vault: &Vault, manifest: &Manifest) -> anyhow::Result<Vec<u8>> {
    let path = Manifest::key(&manifest.id);
    let stored = vault.location.read(&path).await?.with_context(|| format!("{path} is missing"))?;
    let found = Sha256::of(&stored).to_string();
    // Earlier versions stored neither a digest of the key nor a proof.
    let is_written = manifest.sealing_key_sha256.as_ref().is_none_or(|written| *written == found);
    ensure!(is_written, "{path} is not what was written: its SHA-256 is {found}");
    vault.opened(&path, stored).await
}

/// The digest in a row of `blobs`.
pub(crate) fn digest_of(row: &[Cell], at: usize) -> anyhow::Result<Sha256> {
    match row.get(at) {
        Some(Cell::Bytes(bytes)) => {
            Ok(Sha256(bytes.as_slice().try_into().context("a blob's digest is not 32 bytes")?))
        }
        _ => anyhow::bail!("a blob has no digest"),
    }
}

/// The blobs that a backup names, with their sizes.
pub(crate) async fn listed(vault: &Vault, manifest: &Manifest) -> anyhow::Result<HashMap<Sha256, u64>> {
    let path = Manifest::list(&manifest.id);
    let packed = vault.location.read(&path).await?.with_context(|| format!("{path} is missing"))?;
    let found = Sha256(sha2::Sha256::digest(&packed).into());
    ensure!(
        found.to_string() == manifest.blob_list_sha256,
        "{path} is not what was written: its SHA-256 is {found}"
    );
    let mut blobs = HashMap::new();
    let text = zstd::Decoder::new(packed.as_slice()).with_context(|| format!("{path} is damaged"))?;
    for line in BufReader::with_capacity(LINE * 64, text).lines() {
        let line = line.with_context(|| format!("{path} is damaged"))?;
        let (sha256, size) = line.split_once(' ').with_context(|| format!("{path} is damaged"))?;
        blobs.insert(sha256.parse()?, size.parse()?);
    }
    ensure!(
        blobs.len() as u64 == manifest.blobs,
        "{path} has {} blobs and should have {}",
        blobs.len(),
        manifest.blobs
    );
    Ok(blobs)
}

/// Reader of the rows of a table.
pub(crate) struct TableRows {
    lines: std::io::Lines<BufReader<zstd::Decoder<'static, BufReader<File>>>>,
    path: String,
}

impl TableRows {
    /// Copies the rows into a temporary file and compares their digest.
    pub(crate) async fn open(
        vault: &Vault,
        manifest: &Manifest,
        table: &StoredTable,
    ) -> anyhow::Result<TableRows> {
        let path = Manifest::rows(&manifest.id, &table.name);
        let mut file = tempfile::tempfile().context("failed to make a temporary file")?;
        let mut hasher = sha2::Sha256::new();
        let mut pieces = vault.get(&path).await?;
        while let Some(piece) = pieces.try_next().await? {
            hasher.update(&piece);
            file.write_all(&piece).context("failed to write a temporary file")?;
        }
        let found = Sha256(hasher.finalize().into());
        ensure!(found.to_string() == table.sha256, "{path} is not what was written: its SHA-256 is {found}");
        file.rewind()?;
        let text = zstd::Decoder::new(file).with_context(|| format!("{path} is damaged"))?;
        Ok(TableRows { lines: BufReader::new(text).lines(), path })
    }

    /// The next row, or `None` at the end.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Vec<Cell>>> {
        let Some(line) = self.lines.next() else { return Ok(None) };
        let read = line.map_err(anyhow::Error::from).and_then(|line| lines::read(&line));
        read.map(Some).with_context(|| format!("{} is damaged", self.path))
    }
}

async fn read_blobs(
    vault: &Arc<Vault>,
    named: BTreeMap<Sha256, (u64, Vec<usize>)>,
    ids: &[&str],
    verified: &mut Verified,
) -> anyhow::Result<()> {
    let read = named.into_iter().map(|(sha256, (size, backups))| {
        let vault = Arc::clone(vault);
        let read =
            tokio::spawn(async move { (size, backups, sha256, vault.measure(&content(&sha256)).await) });
        async move { read.await.context("the read of a blob failed") }
    });
    let mut read = stream::iter(read).buffer_unordered(AT_ONCE);
    while let Some((size, backups, sha256, found)) = read.try_next().await? {
        verified.blobs += 1;
        let why = match found {
            Ok((bytes, found)) if found == sha256 && bytes == size => {
                verified.bytes += bytes;
                continue;
            }
            Ok((bytes, found)) => {
                format!("it has {bytes} bytes with the SHA-256 {found} instead of {size} bytes")
            }
            Err(error) => format!("{error:#}"),
        };
        let backups: Vec<&str> = backups.iter().filter_map(|number| ids.get(*number).copied()).collect();
        let backups = backups.join(", ");
        verified.damaged.push(format!("the blob {} of {backups}: {why}", content(&sha256)));
    }
    Ok(())
}
