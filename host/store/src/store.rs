//! The store, whose parts are opened and closed together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use crate::accounts::{Acknowledged, Snapshots};
use crate::blobs::Storage;
use crate::blobs::budget::Budget;
use crate::blobs::orphans::Orphans;
use crate::blobs::storage::blocking;
use crate::boxed;
use crate::changes::ChangeLog;
use crate::config::StoreConfig;
use crate::db::{Connections, Database, DatabaseHealth, Generation, Sql, Value};
use crate::error::StoreError;
use crate::highlights::Rankings;
use crate::ids::{OrganizationId, RepositoryId};
use crate::leases::Leases;
use crate::records::cache::RecordCache;
use crate::repository_limits::RepositoryLimits;
use crate::storage_id;
use crate::webhooks::DeliveryNotifier;
use crate::write_behind::{Downloaded, RefusalsOfMinute, UsedAnswer, UsedCredential, WriteBehind};
use crate::writer::{Memory, Writer};

/// Maximum concurrent undos. The limit leaves capacity for publishes if an organization restores
/// thousands of versions.
const UNDOS: usize = 2;

/// Free space of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that this program may still write.
    pub available: u64,
    /// Bytes of the whole disk.
    pub total: u64,
    /// Files that can still be created, if the file system limits them.
    pub files: Option<u64>,
}

/// Records, blobs and accounts. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: StoreConfig,
    pub(crate) db: Database,
    pub(crate) storage: Storage,
    pub(crate) orphans: Orphans,
    pub(crate) budget: Arc<Budget>,
    pub(crate) writer: Writer,
    pub(crate) repository_limits: RepositoryLimits,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) changes: Arc<ChangeLog>,
    /// Leases of servers that share one PostgreSQL; `None` with SQLite.
    pub(crate) leases: Option<Leases>,
    /// Newest revision of each repository that every server is known to see.
    pub(crate) acknowledged: Acknowledged,
    pub(crate) record_cache: Arc<RecordCache>,
    pub(crate) used_credentials: Arc<WriteBehind<UsedCredential>>,
    pub(crate) used_answers: Arc<WriteBehind<UsedAnswer>>,
    pub(crate) refusals: Arc<WriteBehind<RefusalsOfMinute>>,
    pub(crate) downloads: Arc<WriteBehind<Downloaded>>,
    /// Number of bytes of each organization's blobs at the last count, and the time of that count.
    pub(crate) stored_bytes: tokio::sync::Mutex<HashMap<OrganizationId, (Instant, u64)>>,
    /// Rankings of packages for the home page.
    pub(crate) rankings: Rankings,
    /// Rows whose bytes were read and found damaged, with the time.
    pub(crate) damaged_lately: Mutex<HashMap<i64, Instant>>,
    /// Limits the number of concurrent undos.
    pub(crate) undos: tokio::sync::Semaphore,
    /// Signals a deleted repository whose content must be removed.
    pub(crate) deleted: Notify,
    /// Signals that signed statements were added.
    pub(crate) attested: Arc<Notify>,
    /// Signals that webhook deliveries were written.
    pub(crate) delivery_notifier: Arc<DeliveryNotifier>,
    /// True while the store is being closed. Failures of background tasks are expected then.
    pub(crate) closing: AtomicBool,
}

impl Store {
    /// Connects, migrates the schema, removes leftovers of a crash, and checks that the blob
    /// storage belongs to this database. `Unavailable` if the database or the storage cannot be
    /// reached. `Invalid` if the configuration is wrong, or if the folder or bucket belongs to
    /// another database.
    #[boxed]
    pub async fn open(config: StoreConfig) -> Result<Store, StoreError> {
        let db = Database::open(&config).await?;
        let storage = Storage::open(&config).await?;
        storage_id::check(&db, &storage, &config).await?;
        let leases = |changes: &_| Leases::start(&db, changes);
        let store = Store::of_parts(config, db.clone(), storage, leases);
        store.sweep_at_start().await?;
        store.index_commits();
        Ok(store)
    }

    /// Makes a store of these parts, without background tasks.
    pub(crate) fn of_parts(
        config: StoreConfig,
        db: Database,
        storage: Storage,
        leases: impl FnOnce(&Arc<ChangeLog>) -> Option<Leases>,
    ) -> Store {
        let lease_ms = i64::try_from(config.gc_lease.as_millis()).unwrap_or(i64::MAX / 4);
        let snapshots = Arc::<Snapshots>::default();
        let (changes, record_cache) = (Arc::<ChangeLog>::default(), Arc::<RecordCache>::default());
        let leases = leases(&changes);
        let (delivery_notifier, attested) = (Arc::<DeliveryNotifier>::default(), Arc::<Notify>::default());
        let memory = Memory {
            snapshots: Arc::clone(&snapshots),
            changes: Arc::clone(&changes),
            records: Arc::clone(&record_cache),
            leases: leases.clone(),
            delivery_notifier: Arc::clone(&delivery_notifier),
            attested: Arc::clone(&attested),
        };
        let writer = Writer::start(db.clone(), memory, lease_ms);
        let budget = Budget::new(config.staging, storage.folder());
        let orphans = Orphans::new(db.clone(), storage.clone(), config.upload_ttl);
        let inner = Arc::new(Inner {
            budget,
            config,
            orphans,
            storage,
            writer,
            repository_limits: RepositoryLimits::default(),
            used_credentials: WriteBehind::start(&db, &snapshots),
            used_answers: WriteBehind::start(&db, &snapshots),
            refusals: WriteBehind::start(&db, &snapshots),
            downloads: WriteBehind::start(&db, &snapshots),
            stored_bytes: tokio::sync::Mutex::default(),
            rankings: Rankings::default(),
            damaged_lately: Mutex::default(),
            undos: tokio::sync::Semaphore::new(UNDOS),
            deleted: Notify::new(),
            attested,
            delivery_notifier,
            closing: AtomicBool::new(false),
            snapshots,
            changes,
            leases,
            acknowledged: Acknowledged::default(),
            record_cache,
            db,
        });
        Store { inner }
    }

    /// Checks within three seconds if the database answers, and if connections are free.
    /// `Unavailable` contains its error, or states that it did not answer.
    #[boxed]
    pub async fn probe_database(&self) -> Result<DatabaseHealth, StoreError> {
        self.inner.db.probe().await
    }

    /// Number of submitted commits that are not being written yet.
    #[must_use]
    pub fn commits_waiting(&self) -> usize {
        self.inner.writer.waiting()
    }

    /// Age of the oldest unanswered commit; `None` if all are answered.
    #[must_use]
    pub fn oldest_commit(&self) -> Option<Duration> {
        self.inner.writer.oldest()
    }

    /// Current connections to the database.
    #[must_use]
    pub fn connections(&self) -> Connections {
        self.inner.db.connections()
    }

    /// Checks that this program may use the blob storage, as a start does. `Invalid` explains a
    /// wrong configuration, such as rejected credentials. `Unavailable` if the storage does not
    /// answer.
    #[boxed]
    pub async fn admits_blobs(&self) -> Result<(), StoreError> {
        self.inner.storage.check_access().await
    }

    /// Checks the blob storage. A plain check only waits for an answer and costs almost nothing.
    /// With `write` it also writes, reads and removes a blob. `Unavailable` explains the failure.
    #[boxed]
    pub async fn probe_blobs(&self, write: bool) -> Result<(), StoreError> {
        if write { self.inner.storage.canary().await } else { self.inner.storage.ping().await }
    }

    /// Free space on the disk of the data folder. `Unavailable` if the system does not report it.
    #[boxed]
    pub async fn disk_room(&self) -> Result<DiskRoom, StoreError> {
        let folder = self.inner.config.data.clone();
        blocking(move || {
            let disk = rustix::fs::statvfs(&folder)?;
            Ok(DiskRoom {
                available: disk.f_bavail.saturating_mul(disk.f_frsize),
                total: disk.f_blocks.saturating_mul(disk.f_frsize),
                // Some file systems create inodes on demand and report no number.
                files: (disk.f_files > 0).then_some(disk.f_favail),
            })
        })
        .await
    }

    /// Finishes the submitted commits and closes the database. Later calls return `Unavailable`.
    #[boxed]
    pub async fn close(&self) {
        self.inner.closing.store(true, Ordering::Release);
        self.inner.writer.stop().await;
        self.inner.storage.settle_down().await;
        let _ = self.write_token_use().await;
        let _ = self.write_refusals().await;
        let _ = self.write_cache_use().await;
        let _ = self.write_downloads().await;
        if let Some(leases) = &self.inner.leases {
            leases.leave().await;
        }
        self.inner.db.close().await;
    }

    /// A value that changes with every commit to the database by any process. `None` with
    /// PostgreSQL, where such a value would be expensive. Costs no SQL and does not block.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.inner.db.generation()
    }

    /// True if a lease currently allows answers to look-ups from memory. Never true with SQLite,
    /// which needs no lease.
    #[must_use]
    pub fn has_lease(&self) -> bool {
        self.inner.leases.as_ref().is_some_and(Leases::are_held)
    }

    /// Rows whose bytes were read and found damaged, with the time.
    pub(crate) fn damaged_lately(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.inner.damaged_lately.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes data of a repository as [`RepositoryLimits::execute`] does.
    pub(crate) async fn execute_for(
        &self,
        repository: RepositoryId,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        self.inner.repository_limits.execute(&self.inner.db, repository, sql, values).await
    }

    /// Milliseconds since 1970 by the common clock of all servers: PostgreSQL's, or with SQLite the
    /// process's.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.inner.db.now_ms()
    }

    /// Current time of the clock of [`now_ms`](Store::now_ms), in the type of file times.
    pub(crate) fn now(&self) -> SystemTime {
        let since = Duration::from_millis(u64::try_from(self.now_ms()).unwrap_or_default());
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or_else(SystemTime::now)
    }

    /// Milliseconds by which this process's clock is ahead of the database's; negative if it is
    /// behind. The value is a few seconds old while the database answers. `None` with SQLite, which
    /// uses the process's clock.
    #[must_use]
    pub fn clock_skew(&self) -> Option<i64> {
        self.inner.db.clock_ahead_ms()
    }

    /// Time for which commits have been waiting without any success; `None` if nothing waits. While
    /// commits wait, a test commit runs every two seconds. So the value is reset after a failure
    /// even if nobody publishes.
    #[must_use]
    pub fn writer_stalled_for(&self) -> Option<Duration> {
        self.inner.writer.stalled_for()
    }

    /// Number of SQL statements that this store has run since it was opened.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.inner.db.statements()
    }
}
