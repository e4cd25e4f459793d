//! Memory does not grow with a blob: 300 MB go in and out again. Alone in its process, whose resident memory is looked at.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test; helpers are not marked as tests"
)]

use std::fs::read_to_string;

use bytes::Bytes;
use futures::StreamExt;
use packhouse_store::{Algorithm, Store, StoreConfig};

const SIZE: u64 = 300_000_000;
const BOUND_KIB: u64 = 40 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_blob_passes_through_little_memory() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::open(StoreConfig::new(folder.path())).await.unwrap();
    let before = peak_kib();
    let mut stager = store.stage(&[Algorithm::Sha1], u64::MAX);
    let piece = vec![7; 100_000];
    for _ in 0..SIZE / 100_000 {
        stager.write(Bytes::copy_from_slice(&piece)).await.unwrap();
    }
    let blob = stager.finish().await.unwrap();
    let mut stream = blob.stream(0..blob.size());
    let mut read = 0;
    while let Some(chunk) = stream.next().await {
        read += chunk.unwrap().len() as u64;
    }
    assert_eq!(read, SIZE);
    let grown = peak_kib() - before;
    assert!(grown < BOUND_KIB, "{grown} KiB");
}

/// The most memory that was resident, so far.
fn peak_kib() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
