//! The storage of blobs: a folder or a bucket, chosen once at the start.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio_util::task::TaskTracker;

use super::fs::Folder;
use super::objects::{Multipart, Objects};
use crate::config::{BlobsConfig, StoreConfig};
use crate::error::StoreError;

/// Where larger blobs lie. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) place: StoragePlace,
    /// What goes on though its handle may be gone already: writing, and removing what nothing names.
    pub(crate) tasks: TaskTracker,
}

#[derive(Clone)]
pub(crate) enum StoragePlace {
    Folder(Arc<Folder>),
    Bucket(Objects),
}

impl Storage {
    /// `Unavailable` when it cannot be reached, `Invalid` when its address makes no sense.
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

    /// The folder, where it is one.
    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        match &self.place {
            StoragePlace::Folder(folder) => Some(folder.root().to_owned()),
            StoragePlace::Bucket(_) => None,
        }
    }

    /// Whether a blob can be written, read and removed.
    pub(crate) async fn canary(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.canary()).await
            }
            StoragePlace::Bucket(bucket) => bucket.canary().await.map_err(StoreError::storage),
        }
    }

    /// Whether this program may write, read and remove blobs. `Invalid` where it may not, `Unavailable` where that cannot be told.
    pub(crate) async fn check_access(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(_) => self.canary().await,
            StoragePlace::Bucket(bucket) => bucket.check_access().await,
        }
    }

    /// Whether it answers, without writing anything.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.ping()).await
            }
            StoragePlace::Bucket(bucket) => bucket.ping().await.map_err(StoreError::storage),
        }
    }

    /// Where it is, in words for people: without what is secret.
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

    /// Whether there are bytes with this key.
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

    /// Whether there are no bytes of blobs and no file of this name, and in a bucket nothing at all.
    pub(crate) async fn is_empty(&self, mark: &'static str) -> Result<bool, StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.is_empty(mark)).await
            }
            StoragePlace::Bucket(bucket) => bucket.is_empty().await.map_err(StoreError::storage),
        }
    }

    /// Removes the bytes with this key, and what an unfinished multipart upload of them left. That there are none is no fault.
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

    /// Waits until all that handles left behind is done.
    pub(crate) async fn settle_down(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}

/// Bucket, path and endpoint of an address, without its credentials.
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
