//! Blobs that several repositories hold: the storage has one object for all of them. No repository
//! can read a blob that only another repository holds.

use packhouse_store::{Commit, Outcome};

use super::support::{BlobStorage, World, applied, bytes, in_all, in_lasting, naming, read};

in_all! {
    a_repository_sees_only_what_it_holds, one_object_for_equal_bytes, a_lost_race_leaves_one_object,
    a_commit_stores_the_blobs_it_names, bytes_outlive_their_name, a_blob_can_be_stored_twice,
}

mod lasting {
    use super::*;
    in_lasting! { stored_blobs_survive_a_restart }
}

async fn a_repository_sees_only_what_it_holds(world: World) -> World {
    let other = world.another("other").await;
    for size in [100, 100_000] {
        let sha256 = world.keep(&bytes(size as u64, size)).await;
        assert!(world.store.blob(other, sha256).await.unwrap().is_none());
        let naming = Commit { changes: vec![naming("key", &[sha256])], ..Commit::default() };
        assert_eq!(world.store.commit(other, naming).await.unwrap(), Outcome::UnknownBlobs(vec![sha256]));
        let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        world.store.keep(other, &[blob]).await.unwrap();
        assert!(world.store.blob(other, sha256).await.unwrap().is_some());
    }
    world
}

async fn one_object_for_equal_bytes(world: World) -> World {
    let other = world.another("other").await;
    let expected = bytes(5, 6_000_000);
    let first = world.keep(&expected).await;
    let second = world.stage(&expected, &[]).await;
    world.store.keep(other, std::slice::from_ref(&second)).await.unwrap();
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs").await, [1]);
    // The second handle reads its own staged bytes; dropping the handle removes them.
    assert!(read(&second).await == expected);
    drop(second);
    let stored = world.store.blob(other, first).await.unwrap().unwrap();
    assert!(read(&stored).await == expected);
    if matches!(world.kind, BlobStorage::Folder | BlobStorage::Postgres) {
        assert_eq!(world.blob_files().len(), 1);
    }
    world
}

async fn a_lost_race_leaves_one_object(world: World) -> World {
    let expected = bytes(6, 400_000);
    let mut blobs = Vec::new();
    for _ in 0..8 {
        blobs.push(world.stage(&expected, &[]).await);
    }
    let tasks = blobs.into_iter().map(|blob| {
        let (store, repository) = (world.store.clone(), world.repository);
        tokio::spawn(async move { store.keep(repository, &[blob]).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs").await, [1]);
    world
}

async fn a_commit_stores_the_blobs_it_names(world: World) -> World {
    for size in [100, 100_000] {
        let blob = world.stage(&bytes(size as u64, size), &[]).await;
        let sha256 = blob.sha256().await.unwrap();
        let commit =
            Commit { changes: vec![naming("key", &[sha256])], keeps: vec![blob], ..Commit::default() };
        applied(world.store.commit(world.repository, commit).await.unwrap());
        assert!(world.store.blob(world.repository, sha256).await.unwrap().is_some());
    }
    world
}

async fn bytes_outlive_their_name(world: World) -> World {
    if !matches!(world.kind, BlobStorage::Folder | BlobStorage::Postgres) {
        return world;
    }
    let expected = bytes(7, 3_000_000);
    let sha256 = world.keep(&expected).await;
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    world.sql("UPDATE leases SET until = 0").await;
    world.store.collect_garbage().await.unwrap();
    world.sql("UPDATE blobs SET marked_at = 1").await;
    assert_eq!(world.store.collect_garbage().await.unwrap().blobs, 1);
    assert!(read(&blob).await == expected);
    world
}

async fn a_blob_can_be_stored_twice(world: World) -> World {
    let other = world.another("other").await;
    for size in [100, 100_000, 6_000_000] {
        let expected = bytes(size as u64, size);
        let blob = world.stage(&expected, &[]).await;
        world.store.keep(world.repository, &[blob.clone(), blob.clone()]).await.unwrap();
        world.store.keep(other, std::slice::from_ref(&blob)).await.unwrap();
        let stored = world.store.blob(other, blob.sha256().await.unwrap()).await.unwrap().unwrap();
        drop(blob);
        assert!(read(&stored).await == expected, "{size}");
    }
    world
}

async fn stored_blobs_survive_a_restart(mut world: World) -> World {
    for size in [100, 100_000, 6_000_000] {
        let expected = bytes(size as u64, size);
        let sha256 = world.keep(&expected).await;
        world.reopen().await;
        let stored = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert!(read(&stored).await == expected, "{size}");
    }
    world
}
