//! Repairs: the store replaces missing or damaged bytes when a client sends the same bytes again,
//! and only then.

use packhouse_store::{
    AuditEvent, Blob, Change, Commit, Expectation, HeldBlob, Outcome, Restored, StoreError,
};
use sqlx::{Connection, PgConnection};

use super::support::{
    Tampering, World, applied, bytes, drain, in_all, in_kind, in_lasting, naming, read, removing,
};

in_all! { damage_in_the_database_is_repaired, intact_bytes_are_not_replaced }

mod lasting {
    use super::*;
    in_lasting! {
        a_flipped_byte_is_repaired, a_missing_byte_is_repaired, a_missing_blob_is_repaired,
        a_stale_commit_repairs_its_blobs, several_at_once_leave_one_copy,
        bytes_that_are_only_staged_repair_too, a_lost_blob_is_not_usable,
        bytes_restored_on_disk_are_read_again, a_lost_blob_of_an_undo_is_reported,
    }
    in_kind!(
        postgres,
        Postgres,
        a_flipped_byte_is_repaired,
        a_missing_blob_is_repaired,
        several_at_once_leave_one_copy,
        bytes_that_are_only_staged_repair_too,
        the_second_of_two_repairs_examines_what_the_first_stored
    );
}

const SIZE: usize = 1_500_000;

fn content() -> Vec<u8> {
    bytes(1, SIZE)
}

/// Removes the replaced bytes, as garbage collection does once no reader needs them any more.
async fn swept(world: World) -> World {
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs WHERE damaged_at IS NOT NULL").await, [0]);
    assert_eq!(world.store.scrub(None).await.unwrap().damaged, []);
    world.sql("UPDATE strays SET due = 1 WHERE due > 0").await;
    world.store.collect_garbage().await.unwrap();
    world
}

/// Asserts that the blob with this content exists and is intact.
async fn is_whole(world: &World, content: &[u8]) {
    let sha256 = world.stage(content, &[]).await.sha256().await.unwrap();
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    assert!(read(&blob).await == content);
}

async fn a_flipped_byte_is_repaired(world: World) -> World {
    repaired(world, Tampering::Flip(SIZE as u64 - 1)).await
}

async fn a_missing_byte_is_repaired(world: World) -> World {
    repaired(world, Tampering::Truncate).await
}

async fn a_missing_blob_is_repaired(world: World) -> World {
    repaired(world, Tampering::Delete).await
}

async fn repaired(world: World, how: Tampering) -> World {
    let sha256 = world.keep(&content()).await;
    let commit = Commit { changes: vec![naming("a", &[sha256])], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
    world.tamper(how);
    let blob = world.stage(&content(), &[]).await;
    let commit = Commit { changes: vec![naming("b", &[sha256])], keeps: vec![blob], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
    is_whole(&world, &content()).await;
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs").await, [1]);
    swept(world).await
}

async fn damage_in_the_database_is_repaired(world: World) -> World {
    world.keep(b"some bytes").await;
    world.keep(b"other bytes").await;
    world.sql("UPDATE blobs SET data = (SELECT data FROM blobs WHERE size = 11)").await;
    world.keep(b"some bytes").await;
    is_whole(&world, b"some bytes").await;
    is_whole(&world, b"other bytes").await;
    swept(world).await
}

async fn intact_bytes_are_not_replaced(world: World) -> World {
    for size in [10, SIZE] {
        world.keep(&bytes(1, size)).await;
        world.keep(&bytes(1, size)).await;
    }
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs").await, [2]);
    world
}

/// Tests that a commit which is not applied still repairs the blobs that it stored.
async fn a_stale_commit_repairs_its_blobs(world: World) -> World {
    let sha256 = world.keep(&content()).await;
    world.tamper(Tampering::Delete);
    let keeps = vec![world.stage(&content(), &[]).await];
    let mut change = naming("a", &[sha256]);
    if let Change::Put { expect, .. } = &mut change {
        *expect = Expectation::Present;
    }
    let commit = Commit { changes: vec![change], keeps, ..Commit::default() };
    let outcome = world.store.commit(world.repository, commit).await.unwrap();
    assert!(matches!(outcome, Outcome::Stale(_)), "{outcome:?}");
    is_whole(&world, &content()).await;
    swept(world).await
}

async fn several_at_once_leave_one_copy(world: World) -> World {
    world.keep(&content()).await;
    world.tamper(Tampering::Flip(0));
    let mut copies: Vec<Blob> = Vec::new();
    for _ in 0..4 {
        copies.push(world.stage(&content(), &[]).await);
    }
    let keeps = copies.iter().map(|copy| world.store.keep(world.repository, std::slice::from_ref(copy)));
    futures::future::try_join_all(keeps).await.unwrap();
    is_whole(&world, &content()).await;
    // Each copy can be stored once more, even if it lost the race.
    world.store.keep(world.repository, &copies).await.unwrap();
    drop(copies);
    swept(world).await
}

/// While a repair waits for the blob's row, another server repairs the blob, but the bytes that it
/// stored are lost too. The store must acknowledge the waiting repair only when the bytes can be
/// read.
async fn the_second_of_two_repairs_examines_what_the_first_stored(world: World) -> World {
    world.keep(&content()).await;
    world.tamper(Tampering::Delete);
    // Marks the row as damaged beforehand. The repair is then the only write to the row that has to
    // wait for the lock.
    world.sql("UPDATE blobs SET damaged_at = 1").await;
    let mut other = PgConnection::connect(&world.config.database_url).await.unwrap();
    for sql in ["BEGIN", "UPDATE blobs SET place = '00/lost', damaged_at = NULL"] {
        sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    }
    let (store, repository) = (world.store.clone(), world.repository);
    let copy = world.stage(&content(), &[]).await;
    let second = tokio::spawn(async move { store.keep(repository, &[copy]).await });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while world.numbers(waiting).await == [0] {
        assert!(!second.is_finished(), "it did not wait");
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    second.await.unwrap().unwrap();
    is_whole(&world, &content()).await;
    swept(world).await
}

async fn bytes_that_are_only_staged_repair_too(world: World) -> World {
    world.keep(&content()).await;
    world.tamper(Tampering::Flip(0));
    let sent = world.stage(&content(), &[]).await;
    let unknown = world.stage(&bytes(2, SIZE), &[]).await;
    world.store.repair(world.repository, &[sent, unknown]).await.unwrap();
    is_whole(&world, &content()).await;
    assert_eq!(world.numbers("SELECT COUNT(*) FROM blobs").await, [1], "nothing else is stored");
    swept(world).await
}

async fn a_lost_blob_is_not_usable(world: World) -> World {
    let sha256 = world.keep(&content()).await;
    let usable = async || {
        let found = world.store.held_blob(world.repository, sha256).await;
        HeldBlob::usable(found).await.unwrap().is_some()
    };
    assert!(usable().await);
    world.tamper(Tampering::Flip(0));
    assert!(usable().await, "nothing has read it yet");
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    let (_, error) = drain(&blob, 0..blob.size()).await;
    assert!(matches!(error, Some(StoreError::Corrupt(_))) && blob.is_damaged());
    assert!(!usable().await);
    let found = world.store.blob(world.repository, sha256).await;
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
    assert!(blob.stream(0..10).with_first_chunk().await.is_err());
    world.keep(&content()).await;
    assert!(usable().await);
    drop(blob);
    swept(world).await
}

/// Tests bytes that come back on the disk, because the operator mounts a missing folder or restores
/// a file from a backup.
async fn bytes_restored_on_disk_are_read_again(mut world: World) -> World {
    let sha256 = world.keep(&content()).await;
    world.tamper(Tampering::Flip(0));
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    assert!(drain(&blob, 0..blob.size()).await.1.is_some());
    drop(blob);
    assert!(world.store.blob(world.repository, sha256).await.is_err());
    world.tamper(Tampering::Flip(0));
    // The reopened store does not remember that the blob was found lost.
    world.reopen().await;
    is_whole(&world, &content()).await;
    swept(world).await
}

async fn a_lost_blob_of_an_undo_is_reported(world: World) -> World {
    let sha256 = world.keep(&content()).await;
    let named = Commit { changes: vec![naming("a", &[sha256])], ..Commit::default() };
    applied(world.store.commit(world.repository, named).await.unwrap());
    let entry = world.store.begin_trash(world.repository, "lib", "1.0", "somebody", 7).await.unwrap();
    let deletion = Commit { trash: Some(entry), ..removing("a") };
    applied(world.store.commit(world.repository, deletion).await.unwrap());
    world.sql("UPDATE trash SET open = 0, unshown_bytes = 1").await;
    world.tamper(Tampering::Delete);
    let audit = AuditEvent { organization: world.organization, ..AuditEvent::default() };
    let undo = async || world.store.restore_trash(world.repository, entry, &audit).await;
    let result = undo().await;
    assert!(matches!(result, Err(StoreError::Corrupt(_))), "{result:?}");
    world.keep(&content()).await;
    assert_eq!(undo().await.unwrap(), Restored::Done);
    is_whole(&world, &content()).await;
    swept(world).await
}
