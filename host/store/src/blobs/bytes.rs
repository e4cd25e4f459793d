//! Shared state behind the handles to one blob: its source, and what is known of its bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fs::FileVersion;
use super::repair::record_damage;
use super::row::{BlobRow, write_digests};
use super::source::Source;
use crate::db::{Database, values};
use crate::digest::{Algorithm, Digest};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Shared state behind the handles to one blob.
pub(crate) struct BlobBytes {
    pub(crate) source: Source,
    /// Offset of the blob in the source; not 0 only for a slice.
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) origin: Option<RepositoryId>,
    pub(super) known: Mutex<KnownSums>,
    pub(crate) settled: tokio::sync::Mutex<Settled>,
    /// True if a read found the bytes missing or damaged.
    pub(super) damaged: AtomicBool,
    /// Database row of a stored blob.
    pub(crate) stored: Option<StoredRow>,
}

/// Known check value and digests of a blob.
#[derive(Clone, Default)]
pub(crate) struct KnownSums {
    pub(crate) check: Option<u64>,
    pub(crate) digests: BTreeMap<Algorithm, Vec<u8>>,
    /// Last successful check of the whole bytes.
    checked: Option<Checked>,
}

impl KnownSums {
    /// Creates the value with the check value and digests known so far.
    pub(crate) fn new(check: Option<u64>, digests: BTreeMap<Algorithm, Vec<u8>>) -> Self {
        Self { check, digests, checked: None }
    }
}

#[derive(Clone)]
struct Checked {
    at: Instant,
    version: FileVersion,
}

/// Time for which an unchanged file is not checked again after a whole read found it sound. So
/// whole reads may miss spontaneous damage of the disk for that long.
const CHECKED_FOR: Duration = Duration::from_secs(600);

/// State of a new blob that was made durable.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) row: Option<BlobRow>,
    /// Blob that stores a copy of the bytes: for a slice, or for bytes that were only in memory.
    pub(crate) copy: Option<Arc<BlobBytes>>,
}

/// Row of a stored blob, to which digests computed later are added.
pub(crate) struct StoredRow {
    pub(crate) database: Database,
    pub(crate) id: i64,
    /// Storage key; empty if the bytes are in the row.
    pub(crate) key: String,
}

impl BlobBytes {
    pub(crate) fn facts(&self) -> MutexGuard<'_, KnownSums> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the blob's range in the source.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    /// Returns the digest by this algorithm if it is already known.
    pub(super) fn known(&self, algorithm: Algorithm) -> Option<Digest> {
        let bytes = self.facts().digests.get(&algorithm)?.clone();
        Some(Digest { algorithm, bytes })
    }

    /// Returns whether a recent check found this version of the file sound.
    pub(super) fn was_checked_lately(&self, version: &FileVersion, now: Instant) -> bool {
        let facts = self.facts();
        facts.checked.as_ref().is_some_and(|checked| {
            checked.version == *version && now.saturating_duration_since(checked.at) < CHECKED_FOR
        })
    }

    /// Records that a whole read found the bytes sound. `version` must have been read before the
    /// first byte.
    pub(super) fn set_checked(&self, version: FileVersion, now: Instant) {
        self.facts().checked = Some(Checked { at: now, version });
    }

    /// Returns whether a read found the bytes missing or damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Records that the bytes are missing or damaged.
    pub(crate) async fn record_damage(&self) {
        self.damaged.store(true, Ordering::Relaxed);
        match &self.stored {
            Some(StoredRow { database, id, key }) => record_damage(database, *id, key).await,
            None => metrics::counter!("packhouse_blobs_corrupt_total").increment(1),
        }
    }

    /// Passes the result of a read on, and records the damage that it found.
    pub(super) async fn recording_damage<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Corrupt(_)) = &read {
            self.record_damage().await;
        }
        read
    }

    /// Records and logs damage, and returns the error for it.
    pub(crate) async fn corrupt(&self, how: &str) -> StoreError {
        self.record_damage().await;
        let name = match (self.known(Algorithm::Sha256), &self.stored) {
            (Some(digest), Some(row)) => format!("{} ({digest})", row.id),
            (Some(digest), None) => digest.to_string(),
            _ => "with an unknown digest".to_owned(),
        };
        tracing::error!(blob = name, "a blob {how}");
        StoreError::Corrupt(format!("blob {name} {how}"))
    }

    /// Returns the known digests other than SHA-256.
    pub(crate) fn other_digests(&self) -> Vec<Digest> {
        let facts = self.facts();
        let others = facts.digests.iter().filter(|(algorithm, _)| **algorithm != Algorithm::Sha256);
        others.map(|(algorithm, bytes)| Digest { algorithm: *algorithm, bytes: bytes.clone() }).collect()
    }

    /// Stores the computed digests in the row. A failure is only logged, because the digests can be
    /// computed again.
    pub(super) async fn remember_digests(&self) {
        let Some(StoredRow { database, id, .. }) = &self.stored else { return };
        let digests = write_digests(&self.other_digests());
        let update = "UPDATE blobs SET digests = $2 WHERE id = $1";
        if let Err(error) = database.execute(update, values![*id, digests]).await {
            tracing::debug!(%error, blob = id, "could not store a computed digest");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::fs::Folder;
    use crate::blobs::handle::Blob;
    use crate::error::StoreError;
    use bytes::Bytes;
    use futures::StreamExt as _;
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    const SIZE: usize = 2 * 1024 * 1024;

    /// Creates a stored blob of zeros and returns it with the path of its file.
    fn blob(folder: &std::path::Path) -> (Blob, std::path::PathBuf) {
        let folder = Folder::open(folder).unwrap();
        let mut file = folder.begin().unwrap();
        file.append(&[Bytes::from(vec![0; SIZE])]).unwrap();
        let key = folder.settle(&file, std::time::SystemTime::now()).unwrap();
        let check = crate::blobs::check::Check::of(&vec![0; SIZE]);
        let known = KnownSums::new(Some(check), BTreeMap::new());
        let path = folder.root().join("blobs").join(&key);
        (Blob::new(Source::File(Arc::new(file)), SIZE as u64, known, None), path)
    }

    async fn read(blob: &Blob) -> Result<usize, StoreError> {
        let (mut stream, mut read) = (blob.stream(0..SIZE as u64), 0);
        while let Some(chunk) = stream.next().await {
            read += chunk?.len();
        }
        Ok(read)
    }

    #[tokio::test]
    async fn a_file_that_was_written_to_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let (blob, path) = blob(folder.path());
        assert_eq!(read(&blob).await.unwrap(), SIZE);
        assert!(blob.0.facts().checked.is_some());
        assert_eq!(read(&blob).await.unwrap(), SIZE);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(b"x", 1_000_000).unwrap();
        // The damage must be detected even if the modification time was reset.
        file.set_modified(before).unwrap();
        assert!(matches!(read(&blob).await, Err(StoreError::Corrupt(_))));
        file.set_len(1_000_000).unwrap();
        assert!(matches!(read(&blob).await, Err(StoreError::Corrupt(_))));
    }

    #[tokio::test]
    async fn a_file_is_checked_again_after_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (blob, path) = blob(folder.path());
        let Source::File(file) = &blob.0.source else { panic!("a file") };
        let version = file.version().unwrap();
        let (lately, now) = (|now| blob.0.was_checked_lately(&version, now), Instant::now());
        assert!(!lately(now), "the file was not read yet");
        blob.0.set_checked(version.clone(), now);
        assert!(lately(now + CHECKED_FOR / 2));
        assert!(!lately(now + CHECKED_FOR));
        std::fs::File::options().append(true).open(path).unwrap().write_all(b"x").unwrap();
        assert!(!blob.0.was_checked_lately(&file.version().unwrap(), now));
    }
}
