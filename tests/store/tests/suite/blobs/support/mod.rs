//! A store of a test's own over one of the three storages, and access to the storage from outside.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use packhouse_store::{
    Algorithm, Blob, BlobsConfig, Change, Commit, Expectation, NewMember, NewOrganization, NewRepository,
    OrganizationId, Outcome, RepositoryId, Sha256, Store, StoreConfig, StoreError,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

pub(crate) use crate::support::postgres;
pub(crate) mod seaweed;

/// The storage of a test's blobs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum BlobStorage {
    Folder,
    /// A folder, with PostgreSQL as the database; all other kinds use SQLite.
    Postgres,
    Memory,
    S3,
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) config: StoreConfig,
    pub(crate) kind: BlobStorage,
    pub(crate) organization: OrganizationId,
    pub(crate) repository: RepositoryId,
    bucket: Option<seaweed::Bucket>,
    folder: TempDir,
}

impl World {
    /// A world of this kind; `None`, with a printed reason, if the storage is not available.
    pub(crate) async fn new(kind: BlobStorage) -> Option<World> {
        World::with(kind, |_| ()).await
    }

    pub(crate) async fn with(kind: BlobStorage, change: impl FnOnce(&mut StoreConfig)) -> Option<World> {
        let folder = TempDir::new().unwrap();
        let mut config = StoreConfig::new(folder.path());
        let mut bucket = None;
        config.blobs = match kind {
            BlobStorage::Folder => BlobsConfig::Fs(folder.path().to_owned()),
            BlobStorage::Postgres => {
                config.database_url = postgres::shared()?.create_database();
                BlobsConfig::Fs(folder.path().to_owned())
            }
            BlobStorage::Memory => BlobsConfig::Memory,
            BlobStorage::S3 => {
                let made = seaweed::shared()?.create_part();
                let address = made.address();
                bucket = Some(made);
                BlobsConfig::S3(address)
            }
        };
        change(&mut config);
        let store = Store::open(config.clone()).await.unwrap();
        let organization = NewOrganization { name: "first".to_owned(), base_url: None, host: None };
        let owner = NewMember {
            email: "owner@localhost".to_owned(),
            name: "Owner".to_owned(),
            password_hash: "$argon2id$".to_owned(),
            permissions: "{}".to_owned(),
        };
        let organization = store.bootstrap(organization, owner).await.unwrap().unwrap().0.id;
        let repository = make_repository(&store, organization, "main").await;
        Some(World { store, config, kind, organization, repository, bucket, folder })
    }

    /// Creates another repository.
    pub(crate) async fn another(&self, name: &str) -> RepositoryId {
        make_repository(&self.store, self.organization, name).await
    }

    /// Closes the store and opens it again, as after a restart.
    pub(crate) async fn reopen(&mut self) {
        self.store.close().await;
        self.store = Store::open(self.config.clone()).await.unwrap();
    }

    /// Ends the test; asserts that every object in the storage has a row.
    pub(crate) async fn end(self) {
        self.store.close().await;
        let stored = self.numbers("SELECT COUNT(*) FROM blobs WHERE place IS NOT NULL").await[0];
        if let Some(bucket) = &self.bucket {
            assert_eq!(bucket.keys().len(), usize::try_from(stored).unwrap(), "objects without a row");
            let uploads = self.numbers("SELECT COUNT(*) FROM uploads WHERE multipart IS NOT NULL").await[0];
            assert_eq!(
                bucket.unfinished(),
                usize::try_from(uploads).unwrap(),
                "unfinished multipart uploads"
            );
        }
        if matches!(self.kind, BlobStorage::Folder | BlobStorage::Postgres) {
            assert_eq!(files(&self.folder.path().join("staging")), Vec::<PathBuf>::new(), "left in staging");
            assert_eq!(self.blob_files().len(), usize::try_from(stored).unwrap(), "files without a row");
        }
    }

    /// The files of all blobs.
    pub(crate) fn blob_files(&self) -> Vec<PathBuf> {
        files(&self.folder.path().join("blobs"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Stages these bytes in pieces of an odd size.
    pub(crate) async fn stage(&self, bytes: &[u8], digests: &[Algorithm]) -> Blob {
        let mut stager = self.store.stage(digests, u64::MAX);
        for piece in bytes.chunks(70_001) {
            stager.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        stager.finish().await.unwrap()
    }

    /// Stages and stores these bytes.
    pub(crate) async fn keep(&self, bytes: &[u8]) -> Sha256 {
        let blob = self.stage(bytes, &[]).await;
        self.store.keep(self.repository, std::slice::from_ref(&blob)).await.unwrap();
        blob.sha256().await.unwrap()
    }

    /// Changes the bytes of the only blob that is stored outside the database.
    pub(crate) fn tamper(&self, how: Tampering) {
        match self.kind {
            BlobStorage::Folder | BlobStorage::Postgres => {
                let [path] = self.blob_files().try_into().unwrap();
                let file = File::options().read(true).write(true).open(&path).unwrap();
                let length = file.metadata().unwrap().len();
                match how {
                    Tampering::Flip(at) => {
                        let mut byte = [0];
                        file.read_exact_at(&mut byte, at).unwrap();
                        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
                    }
                    Tampering::Truncate => file.set_len(length - 1).unwrap(),
                    Tampering::Delete => std::fs::remove_file(path).unwrap(),
                }
            }
            BlobStorage::S3 => self.bucket.as_ref().unwrap().tamper(how),
            BlobStorage::Memory => unreachable!("memory cannot be reached from outside"),
        }
    }

    /// Runs SQL on the store's database, bypassing the store.
    pub(crate) async fn sql(&self, sql: &'static str) {
        if self.kind == BlobStorage::Postgres {
            let mut connection = PgConnection::connect(&self.config.database_url).await.unwrap();
            // Lock first, so that the statement sees everything committed before it. Otherwise it
            // could wait for the row of a renewed pin and then judge the pin by the older row.
            // After a deadlock, the loop tries again.
            let sql = format!("DO $$ BEGIN LOCK TABLE leases IN EXCLUSIVE MODE; {sql}; END $$");
            while let Err(error) = sqlx::query(AssertSqlSafe(sql.as_str())).execute(&mut connection).await {
                assert!(
                    error.as_database_error().is_some_and(|e| e.code().as_deref() == Some("40P01")),
                    "{error}"
                );
            }
        } else {
            // On a busy disk the store's own transactions take longer than the default of 5 s.
            let connection = rusqlite::Connection::open(self.config.sqlite_file().unwrap()).unwrap();
            connection.busy_timeout(Duration::from_secs(60)).unwrap();
            connection.execute_batch(sql).unwrap();
        }
    }

    /// The first column of a query's answer.
    pub(crate) async fn numbers(&self, sql: &'static str) -> Vec<i64> {
        if self.kind == BlobStorage::Postgres {
            let mut connection = PgConnection::connect(&self.config.database_url).await.unwrap();
            sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap()
        } else {
            let connection = rusqlite::Connection::open(self.config.sqlite_file().unwrap()).unwrap();
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Tampering {
    Flip(u64),
    Truncate,
    Delete,
}

async fn make_repository(store: &Store, organization: OrganizationId, name: &str) -> RepositoryId {
    let repository = NewRepository {
        name: name.to_owned(),
        format: "any".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: "{}".to_owned(),
        upstream: None,
        members: Vec::new(),
    };
    store.create_repository(organization, repository, None).await.unwrap().unwrap().id
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|end| end != "lock") {
            found.push(path);
        }
    }
    found
}

/// Reproducible pseudo-random bytes.
pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(&(state >> 16).to_le_bytes());
    }
    out.truncate(length);
    out
}

/// The bytes of a stream before its end or its first error.
pub(crate) async fn drain(blob: &Blob, range: std::ops::Range<u64>) -> (Vec<u8>, Option<StoreError>) {
    let mut stream = blob.stream(range);
    let mut out = Vec::new();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(chunk) => out.extend_from_slice(&chunk),
            Err(error) => return (out, Some(error)),
        }
    }
    (out, None)
}

pub(crate) async fn read(blob: &Blob) -> Vec<u8> {
    let (bytes, error) = drain(blob, 0..blob.size()).await;
    assert!(error.is_none(), "{error:?}");
    bytes
}

/// A record that refers to these blobs.
pub(crate) fn naming(key: &str, blobs: &[Sha256]) -> Change {
    let (key, value) = (key.to_owned(), Bytes::from_static(b"{}"));
    Change::Put { key, value, expect: Expectation::Anything, blobs: blobs.to_vec() }
}

pub(crate) fn removing(key: &str) -> Commit {
    let change = Change::Remove { key: key.to_owned(), expect: Expectation::Anything };
    Commit { changes: vec![change], ..Commit::default() }
}

#[track_caller]
pub(crate) fn applied(outcome: Outcome) {
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}

/// Makes a test of each function over each storage. A function takes the world and returns it for
/// the final checks.
macro_rules! in_all {
    ($($name:ident),* $(,)?) => {
        crate::blobs::support::in_kind!(folder, Folder, $($name),*);
        crate::blobs::support::in_kind!(postgres, Postgres, $($name),*);
        crate::blobs::support::in_kind!(memory, Memory, $($name),*);
        crate::blobs::support::in_kind!(s3, S3, $($name),*);
    };
}
/// Makes tests over the storages that outlive the store and that tests can change from outside.
macro_rules! in_lasting {
    ($($name:ident),* $(,)?) => {
        crate::blobs::support::in_kind!(folder, Folder, $($name),*);
        crate::blobs::support::in_kind!(s3, S3, $($name),*);
    };
}
macro_rules! in_kind {
    ($module:ident, $kind:ident, $($name:ident),*) => {
        mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(world) = crate::blobs::support::World::new(crate::blobs::support::BlobStorage::$kind).await {
                    super::$name(world).await.end().await;
                }
            })*
        }
    };
}
pub(crate) use {in_all, in_kind, in_lasting};
