//! Uploads that continue over several requests: resumed, refused, finished, aborted and expired
//! uploads.

use std::time::Duration;

use packhouse_store::{Append, StoreError, Upload};

use super::support::{BlobStorage, World, bytes, in_all, in_lasting, read};

in_all! {
    bytes_of_many_requests_are_one_blob, an_empty_upload, another_offset_is_refused, one_request_at_a_time,
    a_broken_request_changes_nothing, an_aborted_upload_is_gone, a_finished_upload_is_gone,
    an_upload_belongs_to_its_repository, too_many_bytes_are_refused, a_dropped_blob_is_gone,
    an_append_does_not_outlive_the_upload, a_note_has_a_size_limit,
}

mod lasting {
    use super::*;
    in_lasting! { an_upload_continues_after_a_restart }
}

async fn begin(world: &World) -> (String, Upload) {
    let name = world.store.begin_upload(world.repository, "a note").await.unwrap();
    assert_eq!(name.len(), 32);
    let upload = find(world, &name).await;
    assert_eq!((upload.note(), upload.length()), ("a note", 0));
    (name, upload)
}

async fn find(world: &World, name: &str) -> Upload {
    world.store.upload(world.repository, name).await.unwrap().unwrap()
}

async fn append(upload: &Upload, bytes: &[u8]) -> Upload {
    let Append::Ready(mut appender) = upload.append(Some(upload.length()), u64::MAX).await.unwrap() else {
        panic!("not ready");
    };
    for piece in bytes.chunks(100_003) {
        appender.write(piece.to_vec().into()).await.unwrap();
    }
    appender.finish().await.unwrap()
}

async fn bytes_of_many_requests_are_one_blob(world: World) -> World {
    for (case, pieces) in
        [&[10, 20][..], &[40_000, 1], &[3_000_000, 3_000_000, 5], &[12_000_000, 0, 6_000_000]]
            .into_iter()
            .enumerate()
    {
        let expected = bytes(case as u64, pieces.iter().sum());
        let (_, mut upload) = begin(&world).await;
        let mut at = 0;
        for piece in pieces {
            upload = append(&upload, &expected[at..at + piece]).await;
            at += piece;
            assert_eq!(upload.length(), at as u64);
        }
        let blob = upload.finish().await.unwrap().unwrap();
        assert!(read(&blob).await == expected, "{pieces:?}");
        world.store.keep(world.repository, std::slice::from_ref(&blob)).await.unwrap();
        let stored = world.store.blob(world.repository, blob.sha256().await.unwrap()).await.unwrap().unwrap();
        assert!(read(&stored).await == expected, "{pieces:?}");
    }
    let report = world.store.scrub(None).await.unwrap();
    assert_eq!((report.blobs, report.damaged.len()), (4, 0));
    world
}

async fn an_empty_upload(world: World) -> World {
    let (_, upload) = begin(&world).await;
    let blob = upload.finish().await.unwrap().unwrap();
    assert_eq!(blob.size(), 0);
    world
}

async fn another_offset_is_refused(world: World) -> World {
    let (_, upload) = begin(&world).await;
    let upload = append(&upload, b"12345").await;
    for offset in [0, 4, 6] {
        let refused = upload.append(Some(offset), u64::MAX).await.unwrap();
        assert!(matches!(refused, Append::Elsewhere(5)), "{offset}");
    }
    let Append::Ready(appender) = upload.append(None, u64::MAX).await.unwrap() else { panic!("not ready") };
    assert_eq!(appender.finish().await.unwrap().length(), 5);
    world
}

async fn one_request_at_a_time(world: World) -> World {
    let (name, upload) = begin(&world).await;
    let Append::Ready(mut first) = upload.append(Some(0), u64::MAX).await.unwrap() else {
        panic!("not ready")
    };
    assert!(matches!(upload.append(Some(0), u64::MAX).await.unwrap(), Append::Busy));
    assert!(find(&world, &name).await.finish().await.unwrap().is_none());
    first.write(bytes(1, 50_000).into()).await.unwrap();
    let upload = first.finish().await.unwrap();
    let upload = append(&upload, b"more").await;
    assert_eq!(upload.length(), 50_004);
    let blob = upload.finish().await.unwrap().unwrap();
    assert!(read(&blob).await == [&bytes(1, 50_000)[..], b"more"].concat());
    world
}

async fn a_broken_request_changes_nothing(world: World) -> World {
    let (name, upload) = begin(&world).await;
    append(&upload, &bytes(1, 6_000_000)).await;
    let upload = find(&world, &name).await;
    let Append::Ready(mut broken) = upload.append(None, u64::MAX).await.unwrap() else { panic!("not ready") };
    broken.write(bytes(2, 7_000_000).into()).await.unwrap();
    drop(broken);
    let mut appender = loop {
        match upload.append(Some(6_000_000), u64::MAX).await.unwrap() {
            Append::Ready(appender) => break appender,
            // The store is still writing the last batch.
            Append::Busy => tokio::task::yield_now().await,
            _ => panic!("gone or changed"),
        }
    };
    appender.write(bytes(3, 100).into()).await.unwrap();
    let blob = appender.finish().await.unwrap().finish().await.unwrap().unwrap();
    assert!(read(&blob).await == [bytes(1, 6_000_000), bytes(3, 100)].concat());
    world
}

async fn an_aborted_upload_is_gone(world: World) -> World {
    for size in [0, 10, 40_000, 6_000_000] {
        let (name, upload) = begin(&world).await;
        let upload = append(&upload, &bytes(1, size)).await;
        upload.clone().abort().await.unwrap();
        upload.clone().abort().await.unwrap();
        assert!(world.store.upload(world.repository, &name).await.unwrap().is_none());
        assert!(matches!(upload.append(None, u64::MAX).await.unwrap(), Append::Gone));
        assert!(upload.finish().await.unwrap().is_none());
    }
    world
}

async fn a_finished_upload_is_gone(world: World) -> World {
    let (name, upload) = begin(&world).await;
    let upload = append(&upload, &bytes(1, 100_000)).await;
    let blob = upload.clone().finish().await.unwrap().unwrap();
    assert!(world.store.upload(world.repository, &name).await.unwrap().is_none());
    assert!(upload.finish().await.unwrap().is_none());
    assert_eq!(blob.size(), 100_000);
    world
}

async fn an_upload_belongs_to_its_repository(world: World) -> World {
    let (name, upload) = begin(&world).await;
    let other = world.another("other").await;
    assert!(world.store.upload(other, &name).await.unwrap().is_none());
    assert!(world.store.upload(world.repository, "nothing").await.unwrap().is_none());
    upload.abort().await.unwrap();
    world
}

async fn too_many_bytes_are_refused(world: World) -> World {
    let (name, upload) = begin(&world).await;
    append(&upload, b"12345").await;
    let upload = find(&world, &name).await;
    let Append::Ready(mut appender) = upload.append(None, 8).await.unwrap() else { panic!("not ready") };
    let refused = appender.write(bytes(1, 4).into()).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { limit: 8, observed: 9 })), "{refused:?}");
    drop(appender);
    assert_eq!(find(&world, &name).await.length(), 5);
    world
}

async fn a_dropped_blob_is_gone(world: World) -> World {
    for size in [10, 40_000, 6_000_000] {
        let (_, upload) = begin(&world).await;
        let upload = append(&upload, &bytes(1, size)).await;
        drop(upload.finish().await.unwrap().unwrap());
    }
    world
}

async fn an_append_does_not_outlive_the_upload(world: World) -> World {
    let (_, upload) = begin(&world).await;
    let Append::Ready(mut appender) = upload.append(None, u64::MAX).await.unwrap() else {
        panic!("not ready")
    };
    appender.write(bytes(1, 6_000_000).into()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(matches!(appender.finish().await, Err(StoreError::Unavailable { .. })));
    world
}

async fn a_note_has_a_size_limit(world: World) -> World {
    let long = "x".repeat(4097);
    assert!(matches!(world.store.begin_upload(world.repository, &long).await, Err(StoreError::Invalid(_))));
    world
}

async fn an_upload_continues_after_a_restart(mut world: World) -> World {
    let expected = bytes(4, 11_000_000);
    let (name, _) = begin(&world).await;
    for piece in expected.chunks(3_999_999) {
        let upload = find(&world, &name).await;
        append(&upload, piece).await;
        world.reopen().await;
    }
    let blob = find(&world, &name).await.finish().await.unwrap().unwrap();
    assert!(read(&blob).await == expected);
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_expire() {
    for kind in [BlobStorage::Folder, BlobStorage::Memory, BlobStorage::S3] {
        let Some(world) = World::with(kind, |config| config.upload_ttl = Duration::ZERO).await else {
            continue;
        };
        let (name, upload) = begin(&world).await;
        append(&upload, &bytes(1, 6_000_000)).await;
        // Two collections run at the same time, as when two servers start. Only one of them may
        // report the removal of the upload.
        let (one, other) = tokio::join!(world.store.collect_garbage(), world.store.collect_garbage());
        assert_eq!(one.unwrap().uploads + other.unwrap().uploads, 1);
        assert!(world.store.upload(world.repository, &name).await.unwrap().is_none());
        world.end().await;
    }
}

/// Tests the unfinished writes of a dead process to a bucket: an upload with acknowledged bytes, an
/// upload without them, and a staged blob. `forget` leaves a handle in the same state as a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_writes_of_a_killed_process_are_removed() {
    let Some(mut world) = World::new(BlobStorage::S3).await else { return };
    for acknowledged in [0, 9_000_000] {
        let (_, upload) = begin(&world).await;
        let upload = append(&upload, &bytes(1, acknowledged)).await;
        let Append::Ready(mut appender) = upload.append(None, u64::MAX).await.unwrap() else {
            panic!("not ready")
        };
        appender.write(bytes(2, 20_000_000).into()).await.unwrap();
        std::mem::forget(appender);
    }
    let mut stager = world.store.stage(&[], u64::MAX);
    stager.write(bytes(3, 20_000_000).into()).await.unwrap();
    std::mem::forget(stager);
    world.reopen().await;
    assert_eq!(world.store.collect_garbage().await.unwrap().uploads, 0);
    assert_eq!(world.numbers("SELECT COUNT(*) FROM strays").await, [3], "uploads that a client may continue");

    world.sql("UPDATE uploads SET claimed_until = 0, updated_at = 1").await;
    world.sql("UPDATE strays SET due = 1").await;
    assert_eq!(world.store.collect_garbage().await.unwrap().uploads, 2);
    let rows = "SELECT COUNT(*) FROM uploads UNION ALL SELECT COUNT(*) FROM upload_parts UNION ALL SELECT COUNT(*) FROM strays";
    assert_eq!(world.numbers(rows).await, [0, 0, 0]);
    // Asserts that no object and no unfinished multipart upload is left.
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_upload_does_not_expire() {
    let world = World::new(BlobStorage::Folder).await.unwrap();
    let (_, upload) = begin(&world).await;
    append(&upload, &bytes(1, 100_000)).await;
    assert_eq!(world.store.collect_garbage().await.unwrap().uploads, 0);
    assert_eq!(find(&world, &begin(&world).await.0).await.length(), 0);
    assert_eq!(upload.length(), 0);
}
