//! What the store is told when it is opened.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where the store keeps what it keeps, and for how long.
#[derive(Clone)]
pub struct StoreConfig {
    /// The data folder. Made when it is not there.
    pub data: PathBuf,
    /// `sqlite://PATH` or `postgres://…`.
    pub database_url: String,
    /// Where larger blobs lie.
    pub blobs: BlobsConfig,
    /// Blobs of at most as many bytes lie in the database.
    pub inline_max: u64,
    /// How long a blob stays that nothing holds any more.
    pub gc_grace: Duration,
    /// How long a repository holds a blob after it was kept there, or looked for by a publish, whether a record names it or not.
    pub gc_lease: Duration,
    /// How long an upload is kept to which nothing is added.
    pub upload_ttl: Duration,
}

impl StoreConfig {
    /// The defaults in this data folder: SQLite in `packhouse.db`, blobs in `blobs`, 32 KiB inline, 24 hours for all times.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> StoreConfig {
        let data = data.into();
        StoreConfig {
            database_url: format!("sqlite://{}", data.join("packhouse.db").display()),
            blobs: BlobsConfig::Fs(data.clone()),
            data,
            inline_max: 32 * 1024,
            gc_grace: Duration::from_hours(24),
            gc_lease: Duration::from_hours(24),
            upload_ttl: Duration::from_hours(24),
        }
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
