//! Configuration of the store: locations, limits and retention times.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::sqlite::sqlite_file;

/// Locations and retention times of the store.
#[derive(Clone)]
pub struct StoreConfig {
    /// The data folder; it is created if necessary.
    pub data: PathBuf,
    /// URL of the database: `sqlite://PATH` or `postgres://…`.
    pub database_url: String,
    /// Time limits of PostgreSQL statements.
    pub database: DatabaseLimits,
    /// Storage of blobs that are larger than `inline_max`.
    pub blobs: BlobsConfig,
    /// Blobs that clients may fetch from S3 directly; `None` if all bytes pass through the server.
    pub redirects: Option<RedirectsConfig>,
    /// Maximum time that S3 may send no byte of a response. Writing a part may take twice as long.
    pub blobs_idle: Duration,
    /// Blobs of at most this many bytes are stored in the database.
    pub inline_max: u64,
    /// Grace period of a blob that nothing holds any more.
    pub gc_grace: Duration,
    /// Time for which a repository holds a blob that no record names: after it was stored there, or
    /// after a publish looked for it.
    pub gc_lease: Duration,
    /// Lifetime of an upload to which nothing is added.
    pub upload_ttl: Duration,
    /// Maximum bytes staged at one time.
    pub staging: StagingLimits,
}

/// Bounds of bytes that were received, decoded or uploaded and that no record names yet.
#[derive(Clone, Copy, Debug)]
pub struct StagingLimits {
    /// Maximum bytes of one repository.
    pub repository_bytes: u64,
    /// Maximum bytes of all repositories.
    pub server_bytes: u64,
    /// Bytes that must stay free on the disk of a blob folder.
    pub keep_free_bytes: u64,
}

impl Default for StagingLimits {
    /// Returns 128 GiB, 256 GiB and 1 GiB.
    fn default() -> StagingLimits {
        StagingLimits { repository_bytes: 128 << 30, server_bytes: 256 << 30, keep_free_bytes: 1 << 30 }
    }
}

impl StoreConfig {
    /// Defaults for this data folder: SQLite in `packhouse.db`, blobs in `blobs`, 32 KiB inline. S3
    /// may be silent for 5 seconds; all other times are 24 hours.
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

    /// File of the database, if it is SQLite.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        self.database_url.starts_with("sqlite:").then(|| sqlite_file(&self.database_url))?.ok()
    }
}

impl fmt::Debug for StoreConfig {
    /// Omits the addresses, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreConfig")
            .field("data", &self.data)
            .field("blobs", &self.blobs)
            .finish_non_exhaustive()
    }
}

/// Time limits of PostgreSQL statements. They bound the wait for a lock that is never released, and
/// for a network that has gone silent. SQLite's reads have their own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// Limit of one statement. Statements of garbage collection may take 30 times as long.
    pub statement: Duration,
    /// Limit of waiting for a lock.
    pub lock: Duration,
}

impl Default for DatabaseLimits {
    fn default() -> DatabaseLimits {
        DatabaseLimits { statement: Duration::from_secs(10), lock: Duration::from_secs(3) }
    }
}

impl DatabaseLimits {
    /// Time limit of the client. It is a little longer than the database's limit, because the
    /// database's own error is more precise.
    pub(crate) fn deadline(&self) -> Duration {
        self.statement.saturating_add(Duration::from_secs(2))
    }
}

/// Blobs that clients fetch from S3 directly, with a signed URL.
#[derive(Clone, Debug)]
pub struct RedirectsConfig {
    /// Minimum size of such a blob.
    pub min_bytes: u64,
    /// Address of S3 for clients, as `https://s3.example`; `None` for the address that the server
    /// uses.
    pub endpoint: Option<String>,
    /// Lifetime of a signed URL.
    pub lifetime: Duration,
}

/// Storage of blobs that are larger than [`StoreConfig::inline_max`].
#[derive(Clone)]
pub enum BlobsConfig {
    /// A folder of the file system, with the subfolders `blobs` and `staging`.
    Fs(PathBuf),
    Memory,
    /// URL of a bucket; a path in it is the prefix of every key. The form is
    /// `s3://bucket?endpoint=…&region=…&access_key_id=…&secret_access_key=…&allow_http=true`.
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
