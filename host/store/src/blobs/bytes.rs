//! What stands behind the handles to one blob: its source, and what is known of its bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::row::{BlobRow, write_digests};
use super::source::Source;
use crate::db::{Database, values};
use crate::digest::{Algorithm, Digest};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// What stands behind the handles to one blob.
pub(crate) struct BlobBytes {
    pub(crate) source: Source,
    /// Where in the source the blob begins: not at 0 only for a slice.
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) origin: Option<RepositoryId>,
    pub(super) known: Mutex<Known>,
    pub(crate) settled: tokio::sync::Mutex<Settled>,
    /// The row that was read, of a stored blob.
    pub(crate) stored: Option<StoredRow>,
}

/// What is known of the bytes besides their number.
#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) check: Option<u64>,
    pub(crate) digests: BTreeMap<Algorithm, Vec<u8>>,
}

/// The state of a new blob that was made durable.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) row: Option<BlobRow>,
    /// The blob that holds the bytes for a slice, or for bytes that were in memory only.
    pub(crate) copy: Option<Arc<BlobBytes>>,
}

/// The row of a stored blob, to remember in it what is computed later.
pub(crate) struct StoredRow {
    pub(crate) database: Database,
    pub(crate) id: i64,
}

impl BlobBytes {
    pub(crate) fn facts(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it lies in the source.
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    /// Its digest by this algorithm, if that needs no reading.
    pub(super) fn known(&self, algorithm: Algorithm) -> Option<Digest> {
        let bytes = self.facts().digests.get(&algorithm)?.clone();
        Some(Digest { algorithm, bytes })
    }

    /// Counts and logs that the bytes are damaged.
    pub(crate) fn corrupt(&self, how: &str) -> StoreError {
        let name = match (self.known(Algorithm::Sha256), &self.stored) {
            (Some(digest), Some(row)) => format!("{} ({digest})", row.id),
            (Some(digest), None) => digest.to_string(),
            _ => "of an unknown digest".to_owned(),
        };
        metrics::counter!("packhouse_blobs_corrupt_total").increment(1);
        tracing::error!(blob = name, "a blob {how}");
        StoreError::Corrupt(format!("blob {name} {how}"))
    }

    /// The digests that are known, besides SHA-256.
    pub(crate) fn other_digests(&self) -> Vec<Digest> {
        let facts = self.facts();
        let others = facts.digests.iter().filter(|(algorithm, _)| **algorithm != Algorithm::Sha256);
        others.map(|(algorithm, bytes)| Digest { algorithm: *algorithm, bytes: bytes.clone() }).collect()
    }

    /// Remembers in the row what was computed. It can be computed again, so a failure is only logged.
    pub(super) async fn remember_digests(&self) {
        let Some(StoredRow { database, id }) = &self.stored else { return };
        let digests = write_digests(&self.other_digests());
        let update = "UPDATE blobs SET digests = $2 WHERE id = $1";
        if let Err(error) = database.execute(update, values![*id, digests]).await {
            tracing::debug!(%error, blob = id, "a digest that was computed was not remembered");
        }
    }
}
