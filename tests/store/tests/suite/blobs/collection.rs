//! Garbage collection removes blobs that no record and no pin holds. It never removes a blob that a
//! publish relies on.

use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use packhouse_store::{Collected, Commit, Outcome, RepositoryId, Store, StoreConfig};

use super::support::{BlobStorage, World, applied, bytes, in_all, naming, read, removing};

in_all! {
    named_or_leased_blobs_stay, unheld_blobs_are_removed, the_grace_period_is_respected,
    bytes_can_be_stored_again_after_removal, an_interrupted_collection_continues, a_look_up_renews_a_lease,
    blobs_that_a_publish_found_stay, pushes_and_collections_race,
    a_small_blob_is_read_by_its_name_until_it_is_removed,
}

const SIZES: [usize; 3] = [100, 100_000, 6_000_000];

/// Collects garbage as if every mark for removal had expired.
async fn collect_at_last(world: &World) -> Collected {
    world.store.collect_garbage().await.unwrap();
    world.sql("UPDATE blobs SET marked_at = 1 WHERE marked_at IS NOT NULL").await;
    world.store.collect_garbage().await.unwrap()
}

async fn expire_leases(world: &World) {
    world.sql("UPDATE leases SET until = 0").await;
}

async fn named_or_leased_blobs_stay(world: World) -> World {
    let mut digests = Vec::new();
    for size in SIZES {
        digests.push(world.keep(&bytes(size as u64, size)).await);
    }
    assert_eq!(collect_at_last(&world).await, Collected::default());
    let commit = Commit { changes: vec![naming("key", &digests)], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
    expire_leases(&world).await;
    assert_eq!(collect_at_last(&world).await, Collected::default());
    for (sha256, size) in digests.into_iter().zip(SIZES) {
        let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert!(read(&blob).await == bytes(size as u64, size));
    }
    world
}

async fn a_small_blob_is_read_by_its_name_until_it_is_removed(world: World) -> World {
    let (small, large) = (bytes(100, 100), bytes(100_000, 100_000));
    let staged = world.stage(&bytes(1, 100), &[]).await;
    assert_eq!(staged.small(), None, "it is not stored");
    let (store, repository) = (&world.store, world.repository);
    let of = async |sha256| store.blob(repository, sha256).await.unwrap().unwrap();
    let large = of(world.keep(&large).await).await;
    assert_eq!(large.small(), None, "its bytes are not stored in the database");
    let blob = of(world.keep(&small).await).await;
    assert_eq!(blob.slice(1, 10).unwrap().small(), None, "a part has no name");
    let name = blob.small().unwrap();
    assert_eq!(world.store.small_blob(name).await.unwrap().unwrap(), small);
    expire_leases(&world).await;
    collect_at_last(&world).await;
    assert_eq!(world.store.small_blob(name).await.unwrap(), None);
    world
}

async fn unheld_blobs_are_removed(world: World) -> World {
    let mut digests = Vec::new();
    for size in SIZES {
        digests.push(world.keep(&bytes(size as u64, size)).await);
    }
    let commit = Commit { changes: vec![naming("key", &digests)], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
    applied(world.store.commit(world.repository, removing("key")).await.unwrap());
    expire_leases(&world).await;
    let collected = collect_at_last(&world).await;
    assert_eq!((collected.blobs, collected.bytes), (3, SIZES.iter().sum::<usize>() as u64));
    for sha256 in digests {
        assert!(world.store.blob(world.repository, sha256).await.unwrap().is_none());
    }
    assert_eq!(world.numbers("SELECT COUNT(*) FROM strays").await, [0]);
    world
}

async fn the_grace_period_is_respected(world: World) -> World {
    world.keep(&bytes(1, 100_000)).await;
    expire_leases(&world).await;
    for _ in 0..2 {
        assert_eq!(world.store.collect_garbage().await.unwrap().blobs, 0);
    }
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs WHERE marked_at IS NOT NULL").await, [1]);
    world.keep(&bytes(1, 100_000)).await;
    world.store.collect_garbage().await.unwrap();
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs WHERE marked_at IS NOT NULL").await, [0]);
    world
}

async fn bytes_can_be_stored_again_after_removal(world: World) -> World {
    for size in SIZES {
        let expected = bytes(size as u64, size);
        for _ in 0..2 {
            let sha256 = world.keep(&expected).await;
            let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
            assert!(read(&blob).await == expected);
            drop(blob);
            expire_leases(&world).await;
            assert_eq!(collect_at_last(&world).await.blobs, 1);
        }
    }
    world
}

async fn an_interrupted_collection_continues(world: World) -> World {
    world.keep(&bytes(1, 100_000)).await;
    // These statements make the state after a kill between the transaction and the removal of the
    // objects.
    world.sql("DELETE FROM strays").await;
    world.sql("INSERT INTO strays (place, due) SELECT place, 0 FROM blobs").await;
    world.sql("DELETE FROM leases").await;
    world.sql("DELETE FROM blobs").await;
    world.keep(&bytes(1, 100_000)).await;
    world.store.collect_garbage().await.unwrap();
    world
}

async fn a_look_up_renews_a_lease(world: World) -> World {
    let sha256 = world.keep(&bytes(1, 100_000)).await;
    let before = world.numbers("SELECT until FROM leases").await[0];
    world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    assert_eq!(world.numbers("SELECT until FROM leases").await, [before]);
    world.sql("UPDATE leases SET until = until - 24 * 3600 * 1000 / 3").await;
    world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    assert!(world.numbers("SELECT until FROM leases").await[0] >= before);
    world
}

/// Tests a publish that does not upload a blob, because the repository already has it. Then the
/// record that held the blob is removed before the publish ends.
async fn blobs_that_a_publish_found_stay(world: World) -> World {
    for (size, found) in [(100, true), (100_000, true), (200, false), (200_000, false)] {
        let sha256 = world.keep(&bytes(size as u64, size)).await;
        let commit = Commit { changes: vec![naming("key", &[sha256])], ..Commit::default() };
        applied(world.store.commit(world.repository, commit).await.unwrap());
        world.sql("DELETE FROM leases").await;
        world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert_eq!(world.numbers("SELECT COUNT(*) FROM leases").await, [0]);
        if found {
            world.store.blob_for_publish(world.repository, sha256).await.unwrap().unwrap();
        }
        applied(world.store.commit(world.repository, removing("key")).await.unwrap());
        collect_at_last(&world).await;
        assert_eq!(world.store.blob(world.repository, sha256).await.unwrap().is_some(), found, "{size}");
    }
    world
}

/// Four tasks push overlapping bytes into their own repositories, publish them and delete them
/// again. Meanwhile collections run for which every mark has already expired, so only the pins
/// protect the blobs.
async fn pushes_and_collections_race(world: World) -> World {
    let done = Arc::new(AtomicBool::new(false));
    let mut pushers = Vec::new();
    for number in 0..4 {
        let repository = world.another(&format!("pusher{number}")).await;
        pushers.push((repository, tokio::spawn(push(world.store.clone(), repository))));
    }
    let stop = Arc::clone(&done);
    let collecting = async {
        while !stop.load(Ordering::Relaxed) {
            world
                .sql(
                    "UPDATE leases SET until = 0 WHERE NOT EXISTS (SELECT 1 FROM records r \
                       WHERE r.repository = leases.repository AND r.key = 'busy')",
                )
                .await;
            world.sql("UPDATE blobs SET marked_at = 1").await;
            world.store.collect_garbage().await.unwrap();
        }
    };
    let pushing = async {
        let mut repositories = Vec::new();
        for (repository, pusher) in pushers {
            pusher.await.unwrap();
            repositories.push(repository);
        }
        done.store(true, Ordering::Relaxed);
        repositories
    };
    let ((), repositories) = tokio::join!(collecting, pushing);
    expire_leases(&world).await;
    world.sql("UPDATE blobs SET marked_at = 1").await;
    world.store.collect_garbage().await.unwrap();
    for repository in repositories {
        for blob in 0..3 {
            let expected = layer(blob);
            let sha256 = packhouse_store::Blob::from_bytes(expected.clone().into()).sha256().await.unwrap();
            let stored = world.store.blob(repository, sha256).await.unwrap().unwrap();
            assert!(read(&stored).await == expected);
        }
    }
    let damaged = world.store.scrub(None).await.unwrap().damaged;
    assert_eq!(damaged, []);
    world
}

fn layer(number: u64) -> Vec<u8> {
    bytes(number, [1000, 50_000, 90_000][usize::try_from(number).unwrap()])
}

async fn push(store: Store, repository: RepositoryId) {
    for round in 0..12 {
        // While this record exists, the test's SQL does not expire the repository's pins.
        commit(&store, repository, vec![naming("busy", &[])]).await;
        let mut named = Vec::new();
        for number in 0..3 {
            let mut stager = store.stage(&[], u64::MAX);
            stager.write(layer(number).into()).await.unwrap();
            let blob = stager.finish().await.unwrap();
            store.keep(repository, std::slice::from_ref(&blob)).await.unwrap();
            named.push(blob.sha256().await.unwrap());
            tokio::task::yield_now().await;
        }
        for sha256 in &named {
            let blob = store.blob(repository, *sha256).await.unwrap().unwrap();
            assert!(!read(&blob).await.is_empty());
        }
        commit(&store, repository, vec![naming("image", &named)]).await;
        if round < 11 {
            applied(store.commit(repository, removing("image")).await.unwrap());
            applied(store.commit(repository, removing("busy")).await.unwrap());
        }
    }
}

async fn commit(store: &Store, repository: RepositoryId, changes: Vec<packhouse_store::Change>) {
    applied(store.commit(repository, Commit { changes, ..Commit::default() }).await.unwrap());
}

/// Without a grace period and pins, a collection may remove a stored blob before a record refers to
/// it. It must not remove the blob after the commit was applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_grace_a_commit_still_holds_its_blobs() {
    for kind in [BlobStorage::Folder, BlobStorage::Postgres, BlobStorage::Memory] {
        let without =
            |config: &mut StoreConfig| (config.gc_grace, config.gc_lease) = (Duration::ZERO, Duration::ZERO);
        let Some(world) = World::with(kind, without).await else {
            continue;
        };
        let done = Arc::new(AtomicBool::new(false));
        let (store, stop) = (world.store.clone(), Arc::clone(&done));
        let collecting = tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                store.collect_garbage().await.unwrap();
            }
        });
        let mut applied = 0;
        for round in 0..60_u64 {
            let expected = bytes(round % 3, 40_000);
            let blob = world.stage(&expected, &[]).await;
            let sha256 = blob.sha256().await.unwrap();
            let together = round % 2 == 0;
            let mut change = Commit { changes: vec![naming("key", &[sha256])], ..Commit::default() };
            if together {
                change.keeps.push(blob);
            } else {
                world.store.keep(world.repository, &[blob]).await.unwrap();
            }
            match world.store.commit(world.repository, change).await.unwrap() {
                Outcome::Applied(_) => {
                    applied += 1;
                    let stored = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
                    assert!(read(&stored).await == expected);
                }
                Outcome::UnknownBlobs(unknown) => assert!(!together && unknown == [sha256]),
                Outcome::Stale(key) => panic!("stale: {key}"),
            }
        }
        assert!(applied >= 30);
        done.store(true, Ordering::Relaxed);
        collecting.await.unwrap();
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leftovers_in_a_folder_are_swept() {
    let mut world = World::new(BlobStorage::Folder).await.unwrap();
    let sha256 = world.keep(&bytes(1, 100_000)).await;
    let abandoned = world.path().join("staging/0123456789abcdef0123456789abcdef");
    fs::create_dir(&abandoned).unwrap();
    File::create(abandoned.join("half")).unwrap();
    let (old, new) = (world.path().join("blobs/ab/old"), world.path().join("blobs/ab/new"));
    for path in [&old, &new] {
        File::create(path).unwrap();
    }
    let upload = world.path().join("uploads/forgotten");
    let long_ago = SystemTime::now() - Duration::from_hours(48);
    for path in [&old, &upload, &world.blob_files()[0], &world.blob_files()[1], &world.blob_files()[2]] {
        if *path != new {
            File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
    }
    world.reopen().await;
    assert!(!abandoned.exists());
    world.store.collect_garbage().await.unwrap();
    assert!(!old.exists() && !upload.exists() && new.exists());
    assert!(world.store.blob(world.repository, sha256).await.unwrap().is_some());
    fs::remove_file(new).unwrap();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_keeps_its_staging() {
    let world = World::new(BlobStorage::Folder).await.unwrap();
    let mut stager = world.store.stage(&[], u64::MAX);
    stager.write(bytes(1, 1_000_000).into()).await.unwrap();
    let second = Store::open(world.config.clone()).await.unwrap();
    second.collect_garbage().await.unwrap();
    stager.write(bytes(2, 1_000_000).into()).await.unwrap();
    let blob = stager.finish().await.unwrap();
    world.store.keep(world.repository, std::slice::from_ref(&blob)).await.unwrap();
    let stored = second.blob(world.repository, blob.sha256().await.unwrap()).await.unwrap().unwrap();
    assert!(read(&stored).await == [bytes(1, 1_000_000), bytes(2, 1_000_000)].concat());
    second.close().await;
    drop((second, blob, stored));
    world.end().await;
}
