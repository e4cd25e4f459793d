//! What the store is told when it is opened.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::sqlite::sqlite_file;

/// Where the store keeps what it keeps, and for how long.
#[derive(Clone)]
pub struct StoreConfig {
    /// The data folder. Made when it is not there.
    pub data: PathBuf,
    /// `sqlite://PATH` or `postgres://…`.
    pub database_url: String,
    /// How long PostgreSQL may take.
    pub database: DatabaseLimits,
    /// Where larger blobs lie.
    pub blobs: BlobsConfig,
    /// Which of them clients may fetch from S3 themselves; none where all pass through the server.
    pub redirects: Option<RedirectsConfig>,
    /// How long S3 may go without a byte of what it was asked for; a part that is written may take
    /// twice as long.
    pub blobs_idle: Duration,
    /// Blobs of at most this many bytes lie in the database.
    pub inline_max: u64,
    /// How long a blob stays that nothing holds any more.
    pub gc_grace: Duration,
    /// How long a repository holds a blob after it was kept there, or looked for by a publish, whether a record names it or not.
    pub gc_lease: Duration,
    /// How long an upload is kept to which nothing is added.
    pub upload_ttl: Duration,
    /// How many bytes may be staged at one time.
    pub staging: StagingLimits,
}

/// Bounds of bytes that were received, decoded or uploaded and are named by no record yet.
#[derive(Clone, Copy, Debug)]
pub struct StagingLimits {
    /// Of one repository, in bytes.
    pub repository_bytes: u64,
    /// Of all repositories, in bytes.
    pub server_bytes: u64,
    /// What is to stay free on the disk of a blob folder, in bytes.
    pub keep_free_bytes: u64,
}

impl Default for StagingLimits {
    /// 128 GiB, 256 GiB, 1 GiB.
    fn default() -> StagingLimits {
        StagingLimits { repository_bytes: 128 << 30, server_bytes: 256 << 30, keep_free_bytes: 1 << 30 }
    }
}

impl StoreConfig {
    /// The defaults in this data folder: SQLite in `packhouse.db`, blobs in `blobs`, 32 KiB inline,
    /// 5 seconds for S3 without a byte, 24 hours for all other times.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> StoreConfig {
        let data = data.into();
        StoreConfig {
            database_url: format!("sqlite://{}", data.join("packhouse.db").display()),
            database: DatabaseLimits::default(),
            blobs: BlobsConfig::Fs(data.clone()),
            data,
            redirects: None,
            blobs_idle: Duration::from_secs(5),
            inline_max: 32 * 1024,
            gc_grace: Duration::from_hours(24),
            gc_lease: Duration::from_hours(24),
            upload_ttl: Duration::from_hours(24),
            staging: StagingLimits::default(),
        }
    }

    /// The database's file, where it is SQLite's.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        self.database_url.starts_with("sqlite:").then(|| sqlite_file(&self.database_url))?.ok()
    }
}

impl fmt::Debug for StoreConfig {
    /// Without the addresses, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreConfig")
            .field("data", &self.data)
            .field("blobs", &self.blobs)
            .finish_non_exhaustive()
    }
}

/// How long a statement of PostgreSQL may take, so that a lock that is never given up and a network that has gone silent hold up
/// what waits for them and nothing else. SQLite's reads have one of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// One statement; what the collection of garbage does may take 30 times as long.
    pub statement: Duration,
    /// A statement that waits for a lock.
    pub lock: Duration,
}

impl Default for DatabaseLimits {
    fn default() -> DatabaseLimits {
        DatabaseLimits { statement: Duration::from_secs(10), lock: Duration::from_secs(3) }
    }
}

impl DatabaseLimits {
    /// How long the client waits: a little longer than the database, whose own answer says more.
    pub(crate) fn deadline(&self) -> Duration {
        self.statement.saturating_add(Duration::from_secs(2))
    }
}

/// Blobs that clients fetch from S3 themselves, at an address that is signed for a while.
#[derive(Clone, Debug)]
pub struct RedirectsConfig {
    /// Bytes of such a blob at least.
    pub min_bytes: u64,
    /// Where clients reach S3, as `https://s3.example`; none where the server reaches it.
    pub endpoint: Option<String>,
    /// How long an address is good.
    pub lifetime: Duration,
}

/// Where larger blobs lie.
#[derive(Clone)]
pub enum BlobsConfig {
    /// A folder of the file system, which holds the folders `blobs` and `staging`.
    Fs(PathBuf),
    /// Memory: for tests.
    Memory,
    /// `s3://bucket?endpoint=…&region=…&access_key_id=…&secret_access_key=…&allow_http=true`; a path is put before every key.
    S3(String),
}

impl fmt::Debug for BlobsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobsConfig::Fs(folder) => f.debug_tuple("Fs").field(folder).finish(),
            BlobsConfig::Memory => f.write_str("Memory"),
            BlobsConfig::S3(_) => f.write_str("S3"),
        }
    }
}
