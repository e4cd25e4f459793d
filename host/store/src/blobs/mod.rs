//! Blobs: handles to bytes, the staging of new ones, and the storage that holds them.
#![allow(dead_code, unused_variables, clippy::unimplemented, reason = "being built")]

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;

use crate::config::StoreConfig;
use crate::digest::{Algorithm, Digest, Sha256};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

mod check;
mod hashing;
pub(crate) mod row;

/// A handle to bytes.
#[derive(Clone, Debug)]
pub struct Blob {
    bytes: Bytes,
}

impl Blob {
    /// A blob in memory.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Blob {
        Blob { bytes }
    }
    /// How many bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
    /// Its SHA-256.
    pub async fn sha256(&self) -> Result<Sha256, StoreError> {
        unimplemented!()
    }
    /// The digest, if known.
    #[must_use]
    pub fn known(&self, algorithm: Algorithm) -> Option<Digest> {
        unimplemented!()
    }
    /// The digest.
    pub async fn digest(&self, algorithm: Algorithm) -> Result<Digest, StoreError> {
        unimplemented!()
    }
    /// Bytes at an offset.
    pub async fn read_at(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        unimplemented!()
    }
    /// Finds bytes.
    pub async fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, StoreError> {
        unimplemented!()
    }
    /// A part.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Blob, StoreError> {
        unimplemented!()
    }
    /// Streams.
    pub fn stream(&self, range: Range<u64>) -> BlobStream {
        unimplemented!()
    }
    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> Option<RepositoryId> {
        unimplemented!()
    }
    pub(crate) async fn settle(&self, store: &Store) -> Result<row::BlobRow, StoreError> {
        unimplemented!()
    }
    pub(crate) fn settled(&self, winner: i64) {}
}

/// The bytes of a blob, in chunks.
pub struct BlobStream {}
impl Stream for BlobStream {
    type Item = Result<Bytes, StoreError>;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        unimplemented!()
    }
}

/// Takes bytes that arrive.
pub struct Stager {}
impl Stager {
    /// Adds bytes.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// All of them.
    pub async fn finish(self) -> Result<Blob, StoreError> {
        unimplemented!()
    }
}

impl Store {
    /// Stages a new blob.
    #[must_use]
    pub fn stage(&self, digests: &[Algorithm], limit: u64) -> Stager {
        unimplemented!()
    }
    /// What this repository holds.
    pub async fn blob(&self, repository: RepositoryId, sha256: Sha256) -> Result<Option<Blob>, StoreError> {
        unimplemented!()
    }
}

/// Where blobs lie.
pub(crate) struct Storage {}

impl Storage {
    pub(crate) async fn open(_config: &StoreConfig) -> Result<Storage, StoreError> {
        Ok(Storage {})
    }

    pub(crate) async fn canary(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
