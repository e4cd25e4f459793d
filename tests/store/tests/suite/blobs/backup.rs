//! What a backup names is not collected while it is copied, whatever happens to the records meanwhile; and what was read at one moment
//! comes to stand in another store, of another kind.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use packhouse_store::{Cell, Commit, Restoring, Snapshot, SnapshotTable, Store, StoreConfig, StoreError};

use super::support::{World, applied, bytes, in_all, naming, read, removing};

in_all! {
    what_is_held_is_not_collected, a_hold_that_nobody_renews_ends, what_was_read_at_one_moment_stands_in_another_store,
    a_restore_that_was_broken_off_is_no_store, only_an_empty_place_is_filled,
}

const SIZES: [usize; 3] = [100, 100_000, 6_000_000];

/// As if the time of every lease and of every mark were over, and marks were old from the beginning.
async fn collect_at_last(world: &World) -> u64 {
    world.sql("UPDATE leases SET until = 0").await;
    let first = world.store.collect_garbage().await.unwrap().blobs;
    world.sql("UPDATE blobs SET marked_at = 1 WHERE marked_at IS NOT NULL").await;
    first + world.store.collect_garbage().await.unwrap().blobs
}

async fn published(world: &World) {
    let mut kept = Vec::new();
    for size in SIZES {
        kept.push(world.keep(&bytes(size as u64, size)).await);
    }
    let commit = Commit { changes: vec![naming("key", &kept)], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn what_is_held_is_not_collected(world: World) -> World {
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

async fn a_hold_that_nobody_renews_ends(world: World) -> World {
    published(&world).await;
    // As if the backup had been killed.
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

/// Sorted, so that two databases can be compared.
fn sorted(mut rows: Rows) -> Rows {
    for (_, rows) in rows.values_mut() {
        rows.sort_by_key(|row| format!("{row:?}"));
    }
    rows
}

/// Puts all blobs there.
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

async fn what_was_read_at_one_moment_stands_in_another_store(world: World) -> World {
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
    // What the triggers keep goes on from there.
    let (organization, repository) = (world.organization, world.repository);
    let usage =
        |store: Store| async move { store.repository_usage(organization, &[repository]).await.unwrap() };
    assert_eq!(usage(world.store.clone()).await, usage(other.clone()).await);
    other.close().await;
    world
}

async fn a_restore_that_was_broken_off_is_no_store(world: World) -> World {
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

    let said = invalid(Store::open(config.clone()).await.map(drop));
    assert!(said.contains("a backup") && said.contains("packhouse restore"), "{said}");
    let said = invalid(Restoring::begin(config.clone(), "another backup", step).await.map(drop));
    assert!(said.contains("broken off"), "{said}");
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

async fn only_an_empty_place_is_filled(world: World) -> World {
    published(&world).await;
    let mut config = world.config.clone();
    let said = invalid(Restoring::begin(config.clone(), "a backup", 1).await.map(drop));
    assert!(said.contains("the database is not empty"), "{said}");
    // Another database on the same storage of blobs, but for memory, which is another each time.
    let folder = tempfile::tempdir().unwrap();
    config.database_url = format!("sqlite://{}", folder.path().join("new.db").display());
    if world.kind != super::support::Kind::Memory {
        let said = invalid(Restoring::begin(config, "a backup", 1).await.map(drop));
        assert!(said.contains("the storage of blobs is not empty"), "{said}");
    }
    let newer =
        invalid(Restoring::begin(StoreConfig::new(folder.path()), "a backup", 10_000).await.map(drop));
    assert!(newer.contains("newer version"), "{newer}");
    world
}

fn invalid(result: Result<(), StoreError>) -> String {
    match result {
        Err(StoreError::Invalid(said)) => said,
        other => panic!("{other:?}"),
    }
}
