//! The store: its parts, opened and closed together.

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
use crate::db::{Answering, Connections, Database, Generation, Sql, Value};
use crate::error::StoreError;
use crate::gates::Gates;
use crate::ids::{OrganizationId, RepositoryId};
use crate::leases::Leases;
use crate::marker;
use crate::records::cache::RecordCache;
use crate::webhooks::Bell;
use crate::write_behind::{Downloaded, RefusalsOfMinute, UsedAnswer, UsedCredential, WriteBehind};
use crate::writer::{Memory, Writer};

/// Undos that go on at one time: an organization that brings thousands back leaves room for what is published meanwhile.
const UNDOS: usize = 2;

/// The room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that this program may still write.
    pub available: u64,
    /// Bytes of the whole disk.
    pub total: u64,
    /// Files that may still be made, where the file system counts them.
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
    pub(crate) gates: Gates,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) changes: Arc<ChangeLog>,
    /// Those that servers of one PostgreSQL hold; none with SQLite.
    pub(crate) leases: Option<Leases>,
    /// Up to which revision of each repository all servers know what is in it.
    pub(crate) acknowledged: Acknowledged,
    pub(crate) record_cache: Arc<RecordCache>,
    pub(crate) used_credentials: Arc<WriteBehind<UsedCredential>>,
    pub(crate) used_answers: Arc<WriteBehind<UsedAnswer>>,
    pub(crate) refusals: Arc<WriteBehind<RefusalsOfMinute>>,
    pub(crate) downloads: Arc<WriteBehind<Downloaded>>,
    /// By organization when its blobs were counted last, and what they take up.
    pub(crate) stored_bytes: tokio::sync::Mutex<HashMap<OrganizationId, (Instant, u64)>>,
    /// Rows whose bytes were read and found damaged, and when.
    pub(crate) damaged_lately: Mutex<HashMap<i64, Instant>>,
    /// Turns of undos.
    pub(crate) undos: tokio::sync::Semaphore,
    /// A repository was deleted, and waits for what it held to be removed.
    pub(crate) deleted: Notify,
    /// Signed statements were written.
    pub(crate) attested: Arc<Notify>,
    /// Something was written for hooks.
    pub(crate) bell: Arc<Bell>,
    /// The store is being closed: what goes on in the background fails, and that is no fault.
    pub(crate) closing: AtomicBool,
}

impl Store {
    /// Connects, brings the schema up to date, sweeps what a crash left behind, and checks that the storage of blobs is this
    /// database's. `Unavailable` when database or storage cannot be reached, `Invalid` when the configuration makes no sense
    /// or the folder or bucket belongs to another database.
    #[boxed]
    pub async fn open(config: StoreConfig) -> Result<Store, StoreError> {
        let db = Database::open(&config).await?;
        let storage = Storage::open(&config).await?;
        marker::check(&db, &storage, &config).await?;
        let leases = |changes: &_| Leases::start(&db, changes);
        let store = Store::of_parts(config, db.clone(), storage, leases);
        store.sweep_at_start().await?;
        store.index_commits();
        Ok(store)
    }

    /// A store of these, with nothing done in the background for it yet.
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
        let (bell, attested) = (Arc::<Bell>::default(), Arc::<Notify>::default());
        let memory = Memory {
            snapshots: Arc::clone(&snapshots),
            changes: Arc::clone(&changes),
            records: Arc::clone(&record_cache),
            leases: leases.clone(),
            bell: Arc::clone(&bell),
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
            gates: Gates::default(),
            used_credentials: WriteBehind::start(&db, &snapshots),
            used_answers: WriteBehind::start(&db, &snapshots),
            refusals: WriteBehind::start(&db, &snapshots),
            downloads: WriteBehind::start(&db, &snapshots),
            stored_bytes: tokio::sync::Mutex::default(),
            damaged_lately: Mutex::default(),
            undos: tokio::sync::Semaphore::new(UNDOS),
            deleted: Notify::new(),
            attested,
            bell,
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

    /// Whether the database answers, and how, within three seconds. `Unavailable` says what it said, or that it said nothing.
    #[boxed]
    pub async fn probe_database(&self) -> Result<Answering, StoreError> {
        self.inner.db.probe().await
    }

    /// How many commits were handed in and are not being written yet.
    #[must_use]
    pub fn commits_waiting(&self) -> usize {
        self.inner.writer.waiting()
    }

    /// The age of the oldest commit that was handed in and is not answered; none: there is none.
    #[must_use]
    pub fn oldest_commit(&self) -> Option<Duration> {
        self.inner.writer.oldest()
    }

    /// The connections to the database at the moment.
    #[must_use]
    pub fn connections(&self) -> Connections {
        self.inner.db.connections()
    }

    /// Whether this program may use the storage of blobs: what a start asks. `Invalid` says what is wrong with the configuration,
    /// such as credentials that are not taken; `Unavailable` when it cannot be told, because storage does not answer.
    #[boxed]
    pub async fn admits_blobs(&self) -> Result<(), StoreError> {
        self.inner.storage.check_access().await
    }

    /// Whether the storage of blobs works: that it answers, which costs next to nothing; with `write`, that a blob can be written,
    /// read and removed too. `Unavailable` says what does not.
    #[boxed]
    pub async fn probe_blobs(&self, write: bool) -> Result<(), StoreError> {
        if write { self.inner.storage.canary().await } else { self.inner.storage.ping().await }
    }

    /// The room on the disk of the data folder. `Unavailable` when the system does not say.
    #[boxed]
    pub async fn disk_room(&self) -> Result<DiskRoom, StoreError> {
        let folder = self.inner.config.data.clone();
        blocking(move || {
            let disk = rustix::fs::statvfs(&folder)?;
            Ok(DiskRoom {
                available: disk.f_bavail.saturating_mul(disk.f_frsize),
                total: disk.f_blocks.saturating_mul(disk.f_frsize),
                // Some file systems make them as they are needed, and count none.
                files: (disk.f_files > 0).then_some(disk.f_favail),
            })
        })
        .await
    }

    /// Finishes the commits that were handed in and closes the database. What is asked later is `Unavailable`.
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

    /// A value that differs after any commit to the database, by this process or another; `None` where there is no cheap one
    /// (PostgreSQL). Costs no SQL and does not block.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.inner.db.generation()
    }

    /// Whether look-ups may be answered from memory at this moment under a lease; never with SQLite, which needs none.
    #[must_use]
    pub fn has_lease(&self) -> bool {
        self.inner.leases.as_ref().is_some_and(Leases::are_held)
    }

    /// Rows whose bytes were read and found damaged, and when.
    pub(crate) fn damaged_lately(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.inner.damaged_lately.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Gates::execute`].
    pub(crate) async fn execute_for(
        &self,
        repository: RepositoryId,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        self.inner.gates.execute(&self.inner.db, repository, sql, values).await
    }

    /// Milliseconds since 1970 by the clock that all servers of the database go by: PostgreSQL's, and with SQLite the process's.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.inner.db.now_ms()
    }

    /// The same, as files have it.
    pub(crate) fn now(&self) -> SystemTime {
        let since = Duration::from_millis(u64::try_from(self.now_ms()).unwrap_or_default());
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or_else(SystemTime::now)
    }

    /// By how many milliseconds this process's clock is ahead of the database's (negative: behind it), as it was seen a few
    /// seconds ago at most while the database answers; none with SQLite, which goes by the process's.
    #[must_use]
    pub fn clock_skew(&self) -> Option<i64> {
        self.inner.db.clock_ahead_ms()
    }

    /// For how long commits were handed in, or tried, and none came to its end; none: nothing waits. Every two seconds it is
    /// tried out whether one does, so this ends with the failure though nobody publishes.
    #[must_use]
    pub fn writer_stalled_for(&self) -> Option<Duration> {
        self.inner.writer.stalled_for()
    }

    /// How many SQL statements this store ran since it was opened.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.inner.db.statements()
    }
}
