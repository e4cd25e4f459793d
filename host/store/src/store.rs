//! The store: its parts, opened and closed together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::accounts::{RefusalsOfMinute, Snapshots, UsedCredential};
use crate::blobs::Storage;
use crate::cache::UsedAnswer;
use crate::config::StoreConfig;
use crate::db::{Database, Generation};
use crate::error::StoreError;
use crate::marker;
use crate::noted::Notes;
use crate::writer::Writer;

/// How long the answer to [`Store::ready`] is good.
const READY_FOR: Duration = Duration::from_secs(1);

/// Records, blobs and accounts. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: StoreConfig,
    pub(crate) db: Database,
    pub(crate) storage: Storage,
    pub(crate) writer: Writer,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) used_credentials: Notes<UsedCredential>,
    pub(crate) used_answers: Notes<UsedAnswer>,
    pub(crate) refusals: Notes<RefusalsOfMinute>,
    ready: Mutex<Option<Instant>>,
}

impl Store {
    /// Connects, brings the schema up to date, sweeps what a crash left behind, and checks that the blob folder is this
    /// database's. `Unavailable` when database or storage cannot be reached, `Invalid` when the configuration makes no sense
    /// or the folder belongs to another database.
    pub async fn open(config: StoreConfig) -> Result<Store, StoreError> {
        let db = Database::open(&config).await?;
        marker::check(&db, &config).await?;
        let storage = Storage::open(&config).await?;
        let lease_ms = i64::try_from(config.gc_lease.as_millis()).unwrap_or(i64::MAX / 4);
        let snapshots = Arc::<Snapshots>::default();
        let writer = Writer::start(db.clone(), Arc::clone(&snapshots), lease_ms);
        let inner = Arc::new(Inner {
            config,
            db,
            storage,
            writer,
            snapshots,
            used_credentials: Notes::default(),
            used_answers: Notes::default(),
            refusals: Notes::default(),
            ready: Mutex::default(),
        });
        Notes::<UsedCredential>::write_now_and_then(&inner);
        Notes::<UsedAnswer>::write_now_and_then(&inner);
        Notes::<RefusalsOfMinute>::write_now_and_then(&inner);
        let store = Store { inner };
        store.sweep_at_start().await?;
        Ok(store)
    }

    /// Whether database and storage both work: the database answers, and a blob can be written, read and removed. That they
    /// do is asked at most once a second. `Unavailable` says what does not.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let mut ready = self.inner.ready.lock().await;
        if ready.is_some_and(|since| since.elapsed() < READY_FOR) {
            return Ok(());
        }
        *ready = None;
        self.inner.db.fetch("SELECT 1", vec![]).await?;
        self.inner.storage.canary().await?;
        *ready = Some(Instant::now());
        Ok(())
    }

    /// Finishes the commits that were handed in and closes the database. What is asked later is `Unavailable`.
    pub async fn close(&self) {
        self.inner.writer.stop().await;
        self.inner.storage.settle_down().await;
        let _ = self.write_token_use().await;
        let _ = self.write_refusals().await;
        let _ = self.write_cache_use().await;
        self.inner.db.close().await;
    }

    /// A value that differs after any commit to the database, by this process or another; `None` where there is no cheap one
    /// (PostgreSQL). Costs no SQL and does not block.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.inner.db.generation()
    }

    /// How many SQL statements this store ran since it was opened.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.inner.db.statements()
    }
}
