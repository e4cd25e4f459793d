//! A store of a test's own, over either database.

use bytes::Bytes;
use packhouse_store::{
    BlobsConfig, Change, Commit, Expectation, NewMember, NewOrganization, NewRepository, OrganizationId,
    OrganizationRow, Outcome, RepositoryId, Store, StoreConfig, StoreError,
};
use tempfile::TempDir;

pub mod postgres;

/// Checks that the database answers, and that a blob can be written, read and removed.
pub async fn works(store: &Store) -> Result<(), StoreError> {
    store.organizations().await?;
    store.probe_blobs(true).await
}

/// Runs `of` up to five times until it costs `expected` statements, and returns the smallest cost. The
/// counter also includes statements that the store runs in the background.
pub async fn fewest_statements(store: &Store, expected: u64, mut of: impl AsyncFnMut()) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        let before = store.statements();
        of().await;
        fewest = fewest.min(store.statements() - before);
        if fewest <= expected {
            break;
        }
    }
    fewest
}

/// A store with an organization and a repository, over a database of its own.
pub struct World {
    pub store: Store,
    pub config: StoreConfig,
    pub organization: OrganizationId,
    pub repository: RepositoryId,
    _folder: TempDir,
    _database: Option<postgres::LentDatabase>,
}

impl World {
    pub async fn sqlite() -> World {
        let folder = TempDir::new().unwrap();
        let config = StoreConfig::new(folder.path());
        World::over(folder, config).await
    }

    /// A world over PostgreSQL; `None`, with a printed reason, if it is not installed.
    pub async fn postgres() -> Option<World> {
        let cluster = postgres::shared()?;
        let folder = TempDir::new().unwrap();
        let mut config = StoreConfig::new(folder.path());
        let database = cluster.lend_database();
        config.database_url.clone_from(&database.url);
        Some(World { _database: Some(database), ..World::over(folder, config).await })
    }

    pub async fn over(folder: TempDir, mut config: StoreConfig) -> World {
        config.blobs = BlobsConfig::Fs(folder.path().to_owned());
        let store = Store::open(config.clone()).await.unwrap();
        let (organization, _) =
            store.bootstrap(organization("first"), member("owner@localhost")).await.unwrap().unwrap();
        let repository = make_repository(&store, &organization, "main").await;
        let organization = organization.id;
        World { store, config, organization, repository, _folder: folder, _database: None }
    }

    /// Waits until the store may answer look-ups from memory.
    pub async fn wait_for_lease(&self) {
        wait_for_lease(&self.store).await;
    }

    /// Creates another repository.
    pub async fn another(&self, name: &str) -> RepositoryId {
        let row = self.store.create_repository(self.organization, repository(name), None).await.unwrap();
        row.unwrap().id
    }

    /// Puts a record unconditionally.
    pub async fn put(&self, key: &str, value: &str) -> u64 {
        let change = put(key, value, Expectation::Anything);
        applied(self.store.commit(self.repository, commit([change])).await.unwrap())
    }

    /// The record's value, as text.
    pub async fn value(&self, key: &str) -> Option<String> {
        let entry = self.store.get(self.repository, key).await.unwrap()?;
        Some(String::from_utf8(entry.value.to_vec()).unwrap())
    }
}

/// Waits until the store may answer look-ups from memory. SQLite needs no wait.
pub async fn wait_for_lease(store: &Store) {
    while store.generation().is_none() && !store.has_lease() {
        store.look_up(OrganizationId(1), "nothing", None).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn make_repository(store: &Store, organization: &OrganizationRow, name: &str) -> RepositoryId {
    store.create_repository(organization.id, repository(name), None).await.unwrap().unwrap().id
}

pub fn organization(name: &str) -> NewOrganization {
    NewOrganization { name: name.to_owned(), base_url: None, host: None }
}

pub fn member(email: &str) -> NewMember {
    let (name, permissions) = ("Somebody".to_owned(), "{}".to_owned());
    NewMember { email: email.to_owned(), name, password_hash: "$argon2id$".to_owned(), permissions }
}

pub fn repository(name: &str) -> NewRepository {
    NewRepository {
        name: name.to_owned(),
        format: "maven".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: "{}".to_owned(),
        upstream: None,
        members: Vec::new(),
    }
}

pub fn put(key: &str, value: &str, expect: Expectation) -> Change {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Change::Put { key: key.to_owned(), value, expect, blobs: Vec::new() }
}

pub fn commit(changes: impl IntoIterator<Item = Change>) -> Commit {
    Commit { changes: changes.into_iter().collect(), ..Commit::default() }
}

#[track_caller]
pub fn applied(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Applied(revision) => revision,
        other => panic!("not applied: {other:?}"),
    }
}

/// Makes a test of each function in both databases.
macro_rules! in_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::support::World::sqlite().await).await;
            })*
        }

        mod postgresql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(world) = crate::support::World::postgres().await {
                    super::$name(&world).await;
                }
            })*
        }
    };
}
pub(crate) use in_both;
