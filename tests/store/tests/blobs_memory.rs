//! Memory use does not depend on a blob's size: the test writes 300 MB and reads them again. This
//! test runs alone in its process, because it measures resident memory.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here fails a test; helpers are not marked as tests"
)]

use std::fs::read_to_string;

use bytes::Bytes;
use futures::StreamExt;
use packhouse_store::{Algorithm, Store, StoreConfig};

const SIZE: u64 = 300_000_000;
const BOUND_KIB: u64 = 40 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_blob_needs_little_memory() {
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

/// Peak resident memory so far, in KiB.
fn peak_kib() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
