//! Guarantees when a database, a process or a folder fails.

use std::time::{Duration, Instant};

use packhouse_store::{Expectation, Store, StoreConfig, StoreError};
use tempfile::TempDir;

use crate::support::{World, commit, in_both, postgres, put, works};

in_both! { applied_commits_survive_reopening, opening_again_changes_nothing, a_closed_store_is_unavailable }

async fn applied_commits_survive_reopening(world: &World) {
    let revision = world.put("key", "value").await;
    // The test does not close the store, so the files are as after a `kill -9`: what the process
    // wrote is there, even if the kernel has not flushed it to the disk.
    let again = Store::open(world.config.clone()).await.unwrap();
    let entry = again.get(world.repository, "key").await.unwrap().unwrap();
    assert_eq!((entry.value.as_ref(), entry.revision), (b"value".as_slice(), revision));
    again.close().await;
    world.store.close().await;
    let again = Store::open(world.config.clone()).await.unwrap();
    assert!(again.get(world.repository, "key").await.unwrap().is_some());
}

async fn opening_again_changes_nothing(world: &World) {
    world.put("key", "value").await;
    for _ in 0..3 {
        let again = Store::open(world.config.clone()).await.unwrap();
        assert_eq!(again.organizations().await.unwrap().len(), 1);
        works(&again).await.unwrap();
        again.close().await;
    }
    assert_eq!(world.value("key").await.as_deref(), Some("value"));
}

async fn a_closed_store_is_unavailable(world: &World) {
    world.store.close().await;
    let change = commit([put("a", "", Expectation::Anything)]);
    assert!(world.store.commit(world.repository, change).await.unwrap_err().is_unavailable());
    assert!(world.store.get(world.repository, "a").await.unwrap_err().is_unavailable());
    assert!(works(&world.store).await.unwrap_err().is_unavailable());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_taken_away_is_unavailable_and_comes_back() {
    let Some(cluster) = postgres::Cluster::start() else { return };
    let folder = TempDir::new().unwrap();
    let mut config = StoreConfig::new(folder.path());
    config.database_url = cluster.create_database();
    let world = World::over(folder, config).await;
    world.put("before", "value").await;
    cluster.stop();
    let change = commit([put("a", "", Expectation::Anything)]);
    assert!(world.store.commit(world.repository, change).await.unwrap_err().is_unavailable());
    assert!(world.store.get(world.repository, "before").await.unwrap_err().is_unavailable());
    assert!(world.store.look_up(world.organization, "main", None).await.unwrap_err().is_unavailable());
    assert!(works(&world.store).await.unwrap_err().is_unavailable());
    assert!(Store::open(world.config.clone()).await.err().unwrap().is_unavailable());
    cluster.resume();
    // The store checks every other second whether it can commit again.
    let start = Instant::now();
    let is_stalled =
        || world.store.writer_stalled_for().is_some_and(|stalled| stalled >= Duration::from_secs(5));
    while works(&world.store).await.is_err() || is_stalled() {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", works(&world.store).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(world.value("before").await.as_deref(), Some("value"));
    world.put("after", "value").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_at_once_make_one_organization() {
    let Some(cluster) = postgres::shared() else { return };
    let folder = TempDir::new().unwrap();
    let mut config = StoreConfig::new(folder.path());
    config.database_url = cluster.create_database();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let config = config.clone();
            tokio::spawn(async move {
                let store = Store::open(config).await.unwrap();
                let (organization, owner) =
                    (crate::support::organization("first"), crate::support::member("o@localhost"));
                store.bootstrap(organization, owner).await.unwrap().is_some()
            })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap());
    }
    assert_eq!(made, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_databases_blob_folder_is_refused() {
    let Some(world) = World::postgres().await else { return };
    let elsewhere = TempDir::new().unwrap();
    let mut config = world.config.clone();
    config.blobs = packhouse_store::BlobsConfig::Fs(elsewhere.path().to_owned());
    let refused = Store::open(config).await.err().unwrap();
    assert!(
        matches!(&refused, StoreError::Invalid(sentence) if sentence.contains("does not hold the blobs of this database")),
        "{refused}"
    );
    let mut config = world.config.clone();
    config.database_url = postgres::shared().unwrap().create_database();
    assert!(matches!(Store::open(config).await, Err(StoreError::Invalid(_))));
}

#[tokio::test]
async fn invalid_addresses_are_refused() {
    let folder = TempDir::new().unwrap();
    for url in ["mysql://x", "", "sqlite::memory:", "postgres://:::"] {
        let mut config = StoreConfig::new(folder.path());
        config.database_url = url.to_owned();
        assert!(matches!(Store::open(config).await, Err(StoreError::Invalid(_))), "{url}");
    }
}
