//! Backups and restores. Garbage collection removes no blob while a backup copies blobs, even if
//! the blob's records are deleted. A restore can write the rows of a backup to a store with another
//! database.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use packhouse_store::{Cell, Commit, Restoring, Snapshot, SnapshotTable, Store, StoreConfig, StoreError};

use super::support::{World, applied, bytes, in_all, naming, read, removing};

in_all! {
    held_blobs_are_not_collected, a_hold_ends_without_renewal, a_snapshot_is_restored_in_another_store,
    an_interrupted_restore_cannot_be_opened, only_an_empty_store_is_restored_into,
}

const SIZES: [usize; 3] = [100, 100_000, 6_000_000];

/// Collects garbage as if every pin and every mark for removal had expired.
async fn collect_at_last(world: &World) -> u64 {
    world.sql("UPDATE leases SET until = 0").await;
    let first = world.store.collect_garbage().await.unwrap().blobs;
    world.sql("UPDATE blobs SET marked_at = 1 WHERE marked_at IS NOT NULL").await;
    first + world.store.collect_garbage().await.unwrap().blobs
}

async fn published(world: &World) {
    let mut stored = Vec::new();
    for size in SIZES {
        stored.push(world.keep(&bytes(size as u64, size)).await);
    }
    let commit = Commit { changes: vec![naming("key", &stored)], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn held_blobs_are_not_collected(world: World) -> World {
    published(&world).await;
    let hold = world.store.hold_blobs().await.unwrap();
    let mut snapshot = world.store.snapshot().await.unwrap();
    applied(world.store.commit(world.repository, removing("key")).await.unwrap());
    let later = world.keep(&bytes(9, 1000)).await;
    assert_eq!(collect_at_last(&world).await, 0);
    let blobs = snapshot.blobs().await.unwrap();
    snapshot.end().await;
    assert_eq!(blobs.len(), SIZES.len());
    assert!(blobs.iter().all(|blob| blob.sha256 != later));
    for (blob, stream) in world.store.blob_bytes(&blobs).await.unwrap() {
        let read: Vec<bytes::Bytes> = stream.try_collect().await.unwrap();
        assert!(read.concat() == bytes(blob.size, usize::try_from(blob.size).unwrap()));
    }
    assert!(!hold.is_lost());
    hold.release().await;
    assert_eq!(collect_at_last(&world).await, 4);
    world
}

async fn a_hold_ends_without_renewal(world: World) -> World {
    published(&world).await;
    // This leaves the hold as a killed backup would leave it.
    std::mem::forget(world.store.hold_blobs().await.unwrap());
    applied(world.store.commit(world.repository, removing("key")).await.unwrap());
    assert_eq!(collect_at_last(&world).await, 0);
    world.sql("UPDATE meta SET value = '1' WHERE name LIKE 'blobs_held:%'").await;
    assert_eq!(collect_at_last(&world).await, 3);
    let hold = world.store.hold_blobs().await.unwrap();
    assert_eq!(world.numbers("SELECT COUNT(*) FROM meta WHERE name LIKE 'blobs_held:%'").await, [1]);
    hold.release().await;
    assert_eq!(world.numbers("SELECT COUNT(*) FROM meta WHERE name LIKE 'blobs_held:%'").await, [0]);
    world
}

type Rows = BTreeMap<String, (Vec<String>, Vec<Vec<Cell>>)>;

async fn all(snapshot: &mut Snapshot) -> Rows {
    let mut all = Rows::new();
    for table in snapshot.tables() {
        let rows: Vec<Vec<Cell>> = snapshot.rows(&table).unwrap().map(|row| row.unwrap()).collect().await;
        all.insert(table.name, (table.columns, rows));
    }
    all
}

/// Sorts the rows, so that a test can compare two databases.
fn sorted(mut rows: Rows) -> Rows {
    for (_, rows) in rows.values_mut() {
        rows.sort_by_key(|row| format!("{row:?}"));
    }
    rows
}

/// Writes all blobs to the other store.
async fn put_blobs(world: &World, restoring: &Restoring, rows: &Rows) {
    let (columns, blobs) = &rows["blobs"];
    let there = restoring.stored_blobs().await.unwrap();
    let at = columns.iter().position(|column| column == "size").unwrap();
    for row in blobs {
        let Cell::Int(size) = row[at] else { panic!("no size: {row:?}") };
        let staged = bytes(size.cast_unsigned(), usize::try_from(size).unwrap());
        let mut stager = restoring.store().stage(&[], u64::MAX);
        stager.write(staged.into()).await.unwrap();
        let blob = stager.finish().await.unwrap();
        assert!(!there.contains(&blob.sha256().await.unwrap()));
        restoring.keep(columns, vec![(row.clone(), blob)]).await.unwrap();
    }
    assert_eq!(restoring.stored_blobs().await.unwrap().len(), blobs.len(), "{:?}", world.kind);
}

async fn put_rows(restoring: &Restoring, rows: &Rows) {
    let mut writing = restoring.rows().await.unwrap();
    for SnapshotTable { name, .. } in restoring.tables().iter().filter(|table| table.name != "blobs") {
        let (columns, rows) = &rows[name];
        writing.add(name, columns, rows.clone()).await.unwrap();
    }
    writing.finish().await.unwrap();
}

async fn a_snapshot_is_restored_in_another_store(world: World) -> World {
    published(&world).await;
    let mut snapshot = world.store.snapshot().await.unwrap();
    let (rows, step) = (all(&mut snapshot).await, snapshot.step());
    snapshot.end().await;
    let folder = tempfile::tempdir().unwrap();
    let config = StoreConfig::new(folder.path());
    let restoring = Restoring::begin(config.clone(), "a backup", step).await.unwrap();
    put_blobs(&world, &restoring, &rows).await;
    put_rows(&restoring, &rows).await;
    restoring.close().await;

    let other = Store::open(config).await.unwrap();
    let mut snapshot = other.snapshot().await.unwrap();
    assert_eq!(sorted(all(&mut snapshot).await), sorted(rows));
    let blobs = snapshot.blobs().await.unwrap();
    snapshot.end().await;
    for blob in blobs {
        let found = other.blob(world.repository, blob.sha256).await.unwrap().unwrap();
        assert!(read(&found).await == bytes(blob.size, usize::try_from(blob.size).unwrap()));
    }
    // The counters that triggers maintain have the restored values and continue from them.
    let (organization, repository) = (world.organization, world.repository);
    let usage =
        |store: Store| async move { store.repository_usage(organization, &[repository]).await.unwrap() };
    assert_eq!(usage(world.store.clone()).await, usage(other.clone()).await);
    other.close().await;
    world
}

async fn an_interrupted_restore_cannot_be_opened(world: World) -> World {
    published(&world).await;
    let mut snapshot = world.store.snapshot().await.unwrap();
    let (rows, step) = (all(&mut snapshot).await, snapshot.step());
    snapshot.end().await;
    let folder = tempfile::tempdir().unwrap();
    let config = StoreConfig::new(folder.path());
    let restoring = Restoring::begin(config.clone(), "a backup", step).await.unwrap();
    put_blobs(&world, &restoring, &rows).await;
    let mut half = restoring.rows().await.unwrap();
    let (columns, organizations) = &rows["organizations"];
    half.add("organizations", columns, organizations.clone()).await.unwrap();
    drop(half);
    restoring.close().await;

    let message = invalid(Store::open(config.clone()).await.map(drop));
    assert!(message.contains("a backup") && message.contains("packhouse restore"), "{message}");
    let message = invalid(Restoring::begin(config.clone(), "another backup", step).await.map(drop));
    assert!(message.contains("interrupted"), "{message}");
    let restoring = Restoring::begin(config.clone(), "a backup", step).await.unwrap();
    assert_eq!(restoring.stored_blobs().await.unwrap().len(), SIZES.len());
    put_rows(&restoring, &rows).await;
    restoring.close().await;
    let other = Store::open(config).await.unwrap();
    let mut snapshot = other.snapshot().await.unwrap();
    assert_eq!(sorted(all(&mut snapshot).await), sorted(rows));
    snapshot.end().await;
    other.close().await;
    world
}

async fn only_an_empty_store_is_restored_into(world: World) -> World {
    published(&world).await;
    let mut config = world.config.clone();
    let message = invalid(Restoring::begin(config.clone(), "a backup", 1).await.map(drop));
    assert!(message.contains("the database is not empty"), "{message}");
    // A new database over the same blob storage. Storage in memory is always new, so the test skips
    // this case for it.
    let folder = tempfile::tempdir().unwrap();
    config.database_url = format!("sqlite://{}", folder.path().join("new.db").display());
    if world.kind != super::support::BlobStorage::Memory {
        let message = invalid(Restoring::begin(config, "a backup", 1).await.map(drop));
        assert!(message.contains("the blob storage is not empty"), "{message}");
    }
    let newer =
        invalid(Restoring::begin(StoreConfig::new(folder.path()), "a backup", 10_000).await.map(drop));
    assert!(newer.contains("newer version"), "{newer}");
    world
}

fn invalid(result: Result<(), StoreError>) -> String {
    match result {
        Err(StoreError::Invalid(message)) => message,
        other => panic!("{other:?}"),
    }
}
