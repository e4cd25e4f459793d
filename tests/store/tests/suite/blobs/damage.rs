//! Damaged blobs: the store never serves a damaged blob completely, and a scrub reports every
//! damaged blob.

use packhouse_store::{Commit, Damaged, StoreError};

use super::support::{Tampering, World, applied, bytes, drain, in_all, in_lasting, naming};

in_all! { sound_blobs_pass, damage_in_the_database }

mod lasting {
    use super::*;
    in_lasting! { a_flipped_byte_at_the_start, a_flipped_byte_at_the_end, a_missing_byte, a_missing_blob }
}

const SIZE: usize = 1_500_000;

async fn sound_blobs_pass(world: World) -> World {
    for size in [0, 100, SIZE, 6_000_000] {
        world.keep(&bytes(size as u64, size)).await;
    }
    let report = world.store.scrub(Some(u64::MAX)).await.unwrap();
    assert_eq!((report.blobs, report.bytes), (4, 100 + SIZE as u64 + 6_000_000));
    assert_eq!(report.damaged, []);
    world
}

async fn damage_in_the_database(world: World) -> World {
    let sha256 = world.keep(b"some bytes").await;
    let name = world.store.blob(world.repository, sha256).await.unwrap().unwrap().small().unwrap();
    world.keep(b"other bytes").await;
    world.sql("UPDATE blobs SET data = (SELECT data FROM blobs WHERE size = 11)").await;
    assert!(matches!(world.store.blob(world.repository, sha256).await, Err(StoreError::Corrupt(_))));
    assert!(matches!(world.store.small_blob(name).await, Err(StoreError::Corrupt(_))));
    let report = world.store.scrub(None).await.unwrap();
    assert_eq!(report.damaged, [Damaged { sha256, missing: false, records: vec![] }]);
    world
}

async fn a_flipped_byte_at_the_start(world: World) -> World {
    tampered(world, Tampering::Flip(0)).await
}

async fn a_flipped_byte_at_the_end(world: World) -> World {
    tampered(world, Tampering::Flip(SIZE as u64 - 1)).await
}

async fn a_missing_byte(world: World) -> World {
    tampered(world, Tampering::Truncate).await
}

async fn tampered(world: World, how: Tampering) -> World {
    let sha256 = world.keep(&bytes(1, SIZE)).await;
    let commit = Commit { changes: vec![naming("a/key", &[sha256])], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
    world.tamper(how);
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    let (sent, error) = drain(&blob, 0..blob.size()).await;
    assert!(sent.len() < SIZE, "{how:?}");
    assert!(matches!(error, Some(StoreError::Corrupt(_))), "{how:?}: {error:?}");
    let report = world.store.scrub(None).await.unwrap();
    let records = vec![(world.repository, "a/key".to_owned())];
    assert_eq!(report.damaged, [Damaged { sha256, missing: false, records }]);
    world
}

async fn a_missing_blob(world: World) -> World {
    let sha256 = world.keep(&bytes(1, SIZE)).await;
    world.tamper(Tampering::Delete);
    match world.store.blob(world.repository, sha256).await {
        // The store notices a loss in a bucket only when it reads the blob.
        Ok(Some(blob)) => {
            let (sent, error) = drain(&blob, 0..blob.size()).await;
            assert_eq!(sent.len(), 0);
            assert!(matches!(error, Some(StoreError::Corrupt(_))), "{error:?}");
        }
        other => assert!(matches!(other, Err(StoreError::Corrupt(_))), "{other:?}"),
    }
    let report = world.store.scrub(None).await.unwrap();
    assert_eq!(report.damaged, [Damaged { sha256, missing: true, records: vec![] }]);
    world.sql("DELETE FROM leases").await;
    world.sql("DELETE FROM blobs").await;
    world
}
