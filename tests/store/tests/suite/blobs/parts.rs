//! Reading, searching and slicing a blob give the same results as on a slice of bytes.

use packhouse_store::{Blob, StoreError};
use proptest::prelude::*;

use super::support::{BlobStorage, World, bytes, in_all};

in_all! { malformed_arguments_are_refused, a_needle_across_windows }

async fn malformed_arguments_are_refused(world: World) -> World {
    let blob = world.stage(&bytes(1, 100_000), &[]).await;
    for (needle, start, end) in [(&b""[..], 0, 10), (&[0; 4097], 0, 10), (b"x", 11, 10)] {
        assert!(matches!(blob.find(needle, start, end).await, Err(StoreError::Invalid(_))));
    }
    for (offset, length) in [(0, 100_001), (100_001, 0), (u64::MAX, 1), (1, u64::MAX)] {
        assert!(matches!(blob.slice(offset, length), Err(StoreError::Invalid(_))));
    }
    world
}

async fn a_needle_across_windows(world: World) -> World {
    let mut content = vec![b'.'; 1_000_000];
    for at in [262_140, 700_000] {
        content[at..at + 8].copy_from_slice(b"a needle");
    }
    let blob = world.stage(&content, &[]).await;
    assert_eq!(blob.find(b"a needle", 0, u64::MAX).await.unwrap(), Some(262_140));
    assert_eq!(blob.find(b"a needle", 262_141, u64::MAX).await.unwrap(), Some(700_000));
    assert_eq!(blob.find(b"a needle", 262_141, 700_007).await.unwrap(), None);
    assert_eq!(blob.find(b"a needle", 262_141, 700_008).await.unwrap(), Some(700_000));
    world
}

/// One step: a slice of the blob, then a read and a search in the slice.
type Step = (prop::sample::Index, prop::sample::Index, u32, u8);

#[test]
fn parts_behave_like_slices_of_bytes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = runtime.block_on(World::new(BlobStorage::Folder)).unwrap();
    let steps = prop::collection::vec(any::<Step>(), 1..5);
    let cases = (0_usize..80_000, 0_u8..3, steps);
    proptest!(ProptestConfig::with_cases(100), |((size, letters, steps) in cases)| {
        let model: Vec<u8> = bytes(size as u64, size).iter().map(|byte| byte % (letters + 2)).collect();
        runtime.block_on(async {
            let blob = world.stage(&model, &[]).await;
            compare(blob, &model, &steps).await;
        });
    });
    runtime.block_on(world.end());
}

async fn compare(mut blob: Blob, mut model: &[u8], steps: &[Step]) {
    for (offset, length, count, letter) in steps {
        let offset = offset.index(model.len() + 1);
        let length = length.index(model.len() - offset + 1);
        blob = blob.slice(offset as u64, length as u64).unwrap();
        model = &model[offset..offset + length];
        assert_eq!(blob.size(), model.len() as u64);
        let (at, count) = (model.len() / 3, count % 100_000);
        let end = (at + count as usize).min(model.len());
        assert_eq!(blob.read_at(at as u64, count).await.unwrap(), model[at..end]);
        assert!(blob.read_at(model.len() as u64, 1).await.unwrap().is_empty());
        let needle = vec![letter % 4; 1 + usize::from(*letter) / 32];
        let found = model[at..end].windows(needle.len()).position(|window| window == needle);
        let expected = found.map(|found| (at + found) as u64);
        assert_eq!(blob.find(&needle, at as u64, end as u64).await.unwrap(), expected);
    }
}
