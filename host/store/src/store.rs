//! The store: its parts, opened and closed together.

use std::sync::Arc;

use crate::blobs::Storage;
use crate::config::StoreConfig;
use crate::db::{Database, Generation};
use crate::error::StoreError;

/// Records, blobs and accounts. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: StoreConfig,
    pub(crate) db: Database,
    pub(crate) storage: Storage,
}

impl Store {
    /// Connects, brings the schema up to date, sweeps what a crash left behind, and checks that the blob folder is this
    /// database's. `Unavailable` when database or storage cannot be reached, `Invalid` when the configuration makes no sense.
    pub async fn open(config: StoreConfig) -> Result<Store, StoreError> {
        let db = Database::open(&config).await?;
        let storage = Storage::open(&config).await?;
        Ok(Store { inner: Arc::new(Inner { config, db, storage }) })
    }

    /// Whether database and storage both work: the database answers, and a blob can be written, read and removed. An answer
    /// is good for a second.
    pub async fn ready(&self) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// Finishes what was handed in and closes the database.
    pub async fn close(&self) {
        unimplemented!()
    }

    /// A value that differs after any commit to the database, by this process or another; `None` where there is no cheap one
    /// (PostgreSQL). Costs no SQL.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.inner.db.generation()
    }
}
