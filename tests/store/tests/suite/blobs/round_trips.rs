//! Round trips: the store returns bytes as they were written, with the right digests.

use bytes::Bytes;
use packhouse_store::{Algorithm, Blob, StoreError};

use super::support::{World, bytes, drain, in_all, read};

in_all! {
    every_size, digests_match_known_values, a_digest_requested_later, dropped_stagers_leave_nothing,
    too_many_bytes_are_refused, bytes_in_memory_are_stored, a_part_is_stored_as_its_own_blob,
    many_small_pieces, the_storage_probe_leaves_nothing,
}

const MIB: usize = 1024 * 1024;

async fn every_size(world: World) -> World {
    let inline = usize::try_from(world.config.inline_max).unwrap();
    let edges = [inline - 1, inline, inline + 1, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 20 * MIB + 7];
    for size in [0, 1].into_iter().chain(edges) {
        let expected = bytes(size as u64, size);
        let staged = world.stage(&expected, &Algorithm::ALL).await;
        assert_eq!(staged.size(), size as u64);
        assert!(read(&staged).await == expected, "{size} staged");
        world.store.keep(world.repository, std::slice::from_ref(&staged)).await.unwrap();
        assert!(read(&staged).await == expected, "{size} stored");
        let stored =
            world.store.blob(world.repository, staged.sha256().await.unwrap()).await.unwrap().unwrap();
        assert!(read(&stored).await == expected, "{size} stored");
        for algorithm in Algorithm::ALL {
            let reference = reference(algorithm, &expected);
            assert_eq!(staged.known(algorithm).unwrap().bytes, reference, "{size} {algorithm}");
            assert_eq!(stored.known(algorithm).unwrap().bytes, reference, "{size} {algorithm}");
        }
        let middle = (size as u64 / 3)..(size as u64 / 2);
        let (part, error) = drain(&stored, middle.clone()).await;
        assert!(error.is_none());
        assert!(
            part == expected[usize::try_from(middle.start).unwrap()..usize::try_from(middle.end).unwrap()]
        );
    }
    world
}

fn reference(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    match algorithm {
        Algorithm::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
        Algorithm::Sha512 => sha2::Sha512::digest(bytes).to_vec(),
        Algorithm::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
        Algorithm::Md5 => md5::Md5::digest(bytes).to_vec(),
        Algorithm::Blake2b256 => blake2::Blake2b256::digest(bytes).to_vec(),
    }
}

async fn digests_match_known_values(world: World) -> World {
    let known = [
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
         454d4423643ce80e2a9ac94fa54ca49f",
        "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
        "md5:900150983cd24fb0d6963f7d28e17f72",
        "blake2b-256:bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
    ];
    let blob = world.stage(b"abc", &Algorithm::ALL).await;
    for (algorithm, known) in Algorithm::ALL.into_iter().zip(known) {
        assert_eq!(blob.known(algorithm).unwrap().to_string(), known);
    }
    world
}

async fn a_digest_requested_later(world: World) -> World {
    for size in [1000, 200_000] {
        let expected = bytes(size as u64, size);
        let sha256 = world.keep(&expected).await;
        let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert!(blob.known(Algorithm::Md5).is_none());
        let md5 = blob.digest(Algorithm::Md5).await.unwrap();
        assert_eq!(md5.bytes, reference(Algorithm::Md5, &expected));
        let again = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert_eq!(again.known(Algorithm::Md5), Some(md5));
    }
    world
}

async fn dropped_stagers_leave_nothing(world: World) -> World {
    for size in [10, 100_000, 12 * MIB] {
        let expected = bytes(1, size);
        let mut stager = world.store.stage(&[Algorithm::Md5], u64::MAX);
        stager.write(expected.clone().into()).await.unwrap();
        drop(stager);
        drop(world.stage(&expected, &[]).await);
    }
    world
}

async fn too_many_bytes_are_refused(world: World) -> World {
    let mut stager = world.store.stage(&[], 1_000_000);
    stager.write(bytes(1, 900_000).into()).await.unwrap();
    let refused = stager.write(bytes(2, 100_001).into()).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { limit: 1_000_000, observed: 1_000_001 })),
        "{refused:?}"
    );
    drop(stager);
    let mut stager = world.store.stage(&[], 5);
    stager.write(Bytes::from_static(b"12345")).await.unwrap();
    assert_eq!(read(&stager.finish().await.unwrap()).await, b"12345");
    world
}

async fn bytes_in_memory_are_stored(world: World) -> World {
    for size in [0, 100, 100_000, 6 * MIB] {
        let expected = bytes(size as u64, size);
        let blob = Blob::from_bytes(expected.clone().into());
        world.store.keep(world.repository, std::slice::from_ref(&blob)).await.unwrap();
        let stored = world.store.blob(world.repository, blob.sha256().await.unwrap()).await.unwrap().unwrap();
        assert!(read(&stored).await == expected, "{size}");
        assert_eq!(stored.origin(), Some(world.repository));
    }
    world
}

async fn a_part_is_stored_as_its_own_blob(world: World) -> World {
    let expected = bytes(9, 7 * MIB);
    let whole = world.stage(&expected, &[]).await;
    for (offset, length) in [(5, 100), (1000, 100_000), (1, 6 * MIB)] {
        let part = whole.slice(offset as u64, length as u64).unwrap();
        world.store.keep(world.repository, std::slice::from_ref(&part)).await.unwrap();
        let sha256 = part.sha256().await.unwrap();
        let stored = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
        assert!(read(&stored).await == expected[offset..offset + length], "{offset} {length}");
    }
    world
}

async fn many_small_pieces(world: World) -> World {
    let expected = bytes(3, 300_000);
    let mut stager = world.store.stage(&[Algorithm::Sha1], u64::MAX);
    for piece in expected.chunks(7) {
        stager.write(Bytes::copy_from_slice(piece)).await.unwrap();
        stager.write(Bytes::new()).await.unwrap();
    }
    let blob = stager.finish().await.unwrap();
    assert_eq!(blob.known(Algorithm::Sha1).unwrap().bytes, reference(Algorithm::Sha1, &expected));
    assert!(read(&blob).await == expected);
    world
}

async fn the_storage_probe_leaves_nothing(world: World) -> World {
    world.store.probe_blobs(true).await.unwrap();
    world
}
