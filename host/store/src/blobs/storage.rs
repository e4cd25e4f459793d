//! Blob storage: a folder or a bucket, chosen at the start.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio_util::task::TaskTracker;

use super::fs::Folder;
use super::objects::{Multipart, Objects};
use crate::config::{BlobsConfig, StoreConfig};
use crate::error::StoreError;

/// Storage of the blobs that are not inline in the database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) place: StoragePlace,
    /// Background work that may outlive its handle: writing, and removing unreferenced bytes.
    pub(crate) tasks: TaskTracker,
}

#[derive(Clone)]
pub(crate) enum StoragePlace {
    Folder(Arc<Folder>),
    Bucket(Objects),
}

impl Storage {
    /// Opens the storage. `Unavailable` if it cannot be reached, `Invalid` if its address is
    /// malformed.
    pub(crate) async fn open(config: &StoreConfig) -> Result<Storage, StoreError> {
        let place = match &config.blobs {
            BlobsConfig::Fs(root) => {
                let root = root.clone();
                StoragePlace::Folder(Arc::new(blocking(move || Folder::open(&root)).await?))
            }
            BlobsConfig::Memory => StoragePlace::Bucket(Objects::in_memory()),
            BlobsConfig::S3(address) => {
                let redirects = config.redirects.as_ref();
                StoragePlace::Bucket(Objects::s3(address, config.blobs_idle, redirects)?)
            }
        };
        Ok(Storage { place, tasks: TaskTracker::new() })
    }

    /// Returns the folder, if the storage is one.
    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        match &self.place {
            StoragePlace::Folder(folder) => Some(folder.root().to_owned()),
            StoragePlace::Bucket(_) => None,
        }
    }

    /// Tests that a blob can be written, read and removed.
    pub(crate) async fn canary(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.canary()).await
            }
            StoragePlace::Bucket(bucket) => bucket.canary().await.map_err(StoreError::storage),
        }
    }

    /// Tests that this program may write, read and remove blobs. `Invalid` if it may not,
    /// `Unavailable` if that cannot be determined.
    pub(crate) async fn check_access(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(_) => self.canary().await,
            StoragePlace::Bucket(bucket) => bucket.check_access().await,
        }
    }

    /// Checks that the storage answers, without writing anything.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.ping()).await
            }
            StoragePlace::Bucket(bucket) => bucket.ping().await.map_err(StoreError::storage),
        }
    }

    /// Returns a readable location without secrets.
    pub(crate) fn described(&self, config: &StoreConfig) -> String {
        match (&self.place, &config.blobs) {
            (StoragePlace::Folder(folder), _) => {
                let root = folder.root();
                let whole = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
                format!("the folder {}", whole.display())
            }
            (StoragePlace::Bucket(_), BlobsConfig::S3(address)) => {
                format!("the bucket {}", public_part(address))
            }
            (StoragePlace::Bucket(_), _) => "memory".to_owned(),
        }
    }

    /// Returns whether there are bytes with this key.
    pub(crate) async fn holds(&self, key: &str) -> Result<bool, StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let (folder, key) = (Arc::clone(folder), key.to_owned());
                blocking(move || folder.open_blob(&key).map(|found| found.is_some())).await
            }
            StoragePlace::Bucket(bucket) => {
                bucket.length(key).await.map(|found| found.is_some()).map_err(StoreError::storage)
            }
        }
    }

    /// Returns whether the storage has no blobs and no file `mark`. A bucket must be completely
    /// empty.
    pub(crate) async fn is_empty(&self, mark: &'static str) -> Result<bool, StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.is_empty(mark)).await
            }
            StoragePlace::Bucket(bucket) => bucket.is_empty().await.map_err(StoreError::storage),
        }
    }

    /// Removes the bytes with this key, and the parts of an unfinished multipart upload. Missing
    /// bytes are not an error.
    pub(crate) async fn remove(&self, key: &str, multipart: Option<String>) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let (folder, key) = (Arc::clone(folder), key.to_owned());
                blocking(move || folder.remove(&key)).await
            }
            StoragePlace::Bucket(bucket) => {
                if let Some(id) = multipart {
                    let multipart = Multipart { key: key.to_owned(), id };
                    bucket.abort(&multipart).await.map_err(StoreError::storage)?;
                }
                bucket.remove(key).await.map_err(StoreError::storage)
            }
        }
    }

    /// Waits for the background work of dropped handles.
    pub(crate) async fn settle_down(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}

/// Returns bucket, path and endpoint of an address, without its credentials.
fn public_part(address: &str) -> String {
    let place = address.split('?').next().unwrap_or_default();
    let url = url::Url::parse(address).ok();
    let endpoint =
        url.as_ref().and_then(|url| url.query_pairs().find(|(name, _)| name.ends_with("endpoint")));
    let host = endpoint.and_then(|(_, value)| url::Url::parse(&value).ok()?.host_str().map(str::to_owned));
    host.map_or_else(|| place.to_owned(), |host| format!("{place} at {host}"))
}

/// Runs file work on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.map_err(StoreError::storage)?.map_err(StoreError::storage)
}
