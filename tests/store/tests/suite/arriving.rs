//! Reads of bytes that are still arriving.

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use packhouse_store::{Algorithm, Arriving, Blob, StoreError};

use crate::support::World;

/// All bytes of a stream, and its error.
async fn drain(arriving: Arriving) -> (Vec<u8>, Option<StoreError>) {
    let (mut bytes, mut stream) = (Vec::new(), std::pin::pin!(arriving.stream()));
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => return (bytes, Some(error)),
        }
    }
    (bytes, None)
}

fn piece(number: u8, length: usize) -> Bytes {
    Bytes::from(vec![number; length])
}

#[tokio::test]
async fn readers_follow_and_the_last_piece_waits_for_the_end() {
    let world = World::sqlite().await;
    // The short stream stays in memory; the long one goes to a file after some pieces.
    for length in [10, 200_000] {
        let (mut arrival, arriving) = world.store.arrive(&[Algorithm::Sha1], u64::MAX, Some(1));
        let mut first = Box::pin(arriving.stream());
        assert!(first.next().now_or_never().is_none());
        for number in 0..4 {
            arrival.write(piece(number, length)).await.unwrap();
        }
        let mut received = 0;
        while received < 3 * length {
            received += first.next().await.unwrap().unwrap().len();
        }
        assert_eq!(received, 3 * length, "the stream holds back the last piece");
        assert!(first.next().now_or_never().is_none());
        assert_eq!(arriving.read_at(length as u64, 5).await.unwrap(), piece(1, 5));
        assert!(arriving.now().is_none() && arriving.wait().now_or_never().is_none());
        let blob = arrival.received().await.unwrap();
        assert!(blob.known(Algorithm::Sha1).is_some());
        assert!(
            first.next().now_or_never().is_none(),
            "all bytes arrived, but their digest is not verified yet"
        );
        arrival.end(blob);
        assert_eq!(first.next().await.unwrap().unwrap(), piece(3, length));
        assert!(first.next().await.is_none());
        let (all, error) = drain(arriving.clone()).await;
        assert!(error.is_none() && all.len() == 4 * length && all[3 * length] == 3);
        assert_eq!(arriving.wait().await.unwrap().size(), 4 * length as u64);
        assert_eq!(arriving.read_at(4 * length as u64 - 2, 100).await.unwrap(), piece(3, 2));
    }
}

#[tokio::test]
async fn an_incomplete_stream_ends_with_an_error() {
    let world = World::sqlite().await;
    for dropped in [true, false] {
        let (mut arrival, arriving) = world.store.arrive(&[], u64::MAX, None);
        arrival.write(piece(1, 300_000)).await.unwrap();
        arrival.write(piece(2, 5)).await.unwrap();
        match dropped {
            true => drop(arrival),
            false => arrival.fail(&StoreError::Invalid("not what it should be".to_owned())),
        }
        let (bytes, error) = drain(arriving.clone()).await;
        assert_eq!(bytes.len(), 300_000);
        assert!(matches!(error, Some(StoreError::BrokenOff(_))), "{error:?}");
        assert!(matches!(arriving.wait().await, Err(StoreError::BrokenOff(_))));
    }
}

#[tokio::test]
async fn too_many_bytes_have_their_own_error() {
    let world = World::sqlite().await;
    let (mut arrival, arriving) = world.store.arrive(&[], 10, None);
    arrival.write(piece(1, 10)).await.unwrap();
    let error = arrival.write(piece(1, 1)).await.unwrap_err();
    arrival.fail(&error);
    assert!(matches!(arriving.wait().await, Err(StoreError::TooLarge { limit: 10, observed: 11 })));
}

#[tokio::test]
async fn complete_bytes_are_read_in_the_same_way() {
    let blob = Blob::from_bytes(piece(1, 1000));
    let arriving = Arriving::whole(blob);
    assert_eq!(arriving.declared(), Some(1000));
    assert_eq!(drain(arriving.clone()).await.0.len(), 1000);
    assert_eq!(arriving.now().unwrap().size(), 1000);
}
