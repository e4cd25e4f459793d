//! Blobs: placeholder until the real ones stand here.

use bytes::Bytes;

use crate::config::StoreConfig;
use crate::error::StoreError;

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

    pub(crate) async fn settle(&self) -> Result<row::BlobRow, StoreError> {
        unimplemented!()
    }

    pub(crate) async fn discard(&self) {}
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
