//! Deleted repositories: the store hides them at once, and any server removes their content in
//! pieces.

use std::time::Duration;

use bytes::Bytes;
use packhouse_store::{
    Blob, CatalogChange, Change, Commit, Expectation, RepositoryId, Sha256, Store, Version, VersionFile,
};

use crate::support::{World, applied, commit, in_both, put, repository};

in_both! {
    a_deleted_repository_is_hidden, the_content_of_a_deleted_repository_is_removed,
    an_interrupted_removal_continues, other_repositories_accept_publishes_during_a_removal,
}

/// Number of records. The store removes rows in pieces, and these records fill more than two pieces
/// of each table.
const MANY: usize = 1000;

/// Commits records with these numbers. Each record has its own blob and publishes a version with
/// one file.
async fn publish(store: &Store, repository: RepositoryId, numbers: std::ops::Range<usize>) -> Vec<Sha256> {
    let (mut whole, mut all) = (Commit::default(), Vec::new());
    for number in numbers {
        let blob = Blob::from_bytes(Bytes::from(format!("{repository} {number}")));
        let sha256 = blob.sha256().await.unwrap();
        let change = put(&format!("file/{number}"), "value", Expectation::Absent);
        let Change::Put { key, value, expect, .. } = change else { panic!("no put") };
        whole.changes.push(Change::Put { key, value, expect, blobs: vec![sha256] });
        let file = VersionFile { path: format!("{number}.jar"), digest: sha256.digest(), size: blob.size() };
        whole.catalog.push(CatalogChange::Show(Version {
            name: format!("package{}", number % 100),
            version: format!("{number}"),
            files: vec![file],
            ..Version::default()
        }));
        whole.keeps.push(blob);
        all.push(sha256);
    }
    applied(store.commit(repository, whole).await.unwrap());
    all
}

async fn fill(world: &World, repository: RepositoryId) -> Vec<Sha256> {
    let mut all = Vec::new();
    for from in (0..MANY).step_by(200) {
        all.extend(publish(&world.store, repository, from..from + 200).await);
    }
    world.store.begin_upload(repository, "note").await.unwrap();
    all
}

async fn a_deleted_repository_is_hidden(world: &World) {
    let (store, organization, gone) = (&world.store, world.organization, world.another("gone").await);
    fill(world, gone).await;
    let statements = store.statements();
    assert!(store.delete_repository(organization, gone, None).await.unwrap());
    assert!(store.statements() - statements < 20, "it took {}", store.statements() - statements);
    assert!(!store.delete_repository(organization, gone, None).await.unwrap());
    assert!(store.find_repository(organization, gone).await.unwrap().is_none());
    assert!(store.find_repositories(organization, &[gone]).await.unwrap().is_empty());
    let listed = store.list_repositories(organization, None, 100).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), [world.repository]);
    assert_eq!(store.formats_in_use(None).await.unwrap(), [("maven".to_owned(), 1)]);
    for name in ["gone".to_owned(), format!("/{gone}")] {
        let facts = store.look_up(organization, &name, None).await.unwrap();
        assert!(facts.repository.is_none(), "{name}");
        assert!(store.look_up_others(organization, &[name], &facts).await.unwrap().is_empty());
        assert_eq!(store.list_reached(organization, &facts, None, 100).await.unwrap().len(), 1);
    }
    let change = commit([put("key", "value", Expectation::Anything)]);
    assert!(store.commit(gone, change).await.is_err());
    assert!(store.keep(gone, &[Blob::from_bytes(Bytes::from("bytes"))]).await.is_err());
    assert!(!store.set_upstream_credentials(gone, Some("sealed"), None).await.unwrap());
    let again = store.create_repository(organization, repository("gone"), None).await.unwrap().unwrap();
    assert_ne!(again.id, gone);
    assert!(store.package_names(again.id, "", 10).await.unwrap().is_empty());
}

async fn the_content_of_a_deleted_repository_is_removed(world: &World) {
    let (store, gone) = (&world.store, world.another("gone").await);
    let blobs = fill(world, gone).await;
    let digests = publish(store, world.repository, 0..10).await;
    assert!(store.delete_repository(world.organization, gone, None).await.unwrap());
    assert_eq!(store.remove_deleted().await.unwrap(), 1);
    assert_eq!(store.remove_deleted().await.unwrap(), 0);
    assert!(store.scan(gone, "", None, 10).await.unwrap().is_empty());
    assert!(store.package_names(gone, "", 10).await.unwrap().is_empty());
    for sha256 in &digests {
        assert!(store.held_blob(world.repository, *sha256).await.unwrap().is_some());
    }
    let mut config = world.config.clone();
    config.gc_grace = Duration::ZERO;
    config.gc_lease = Duration::ZERO;
    let collecting = Store::open(config).await.unwrap();
    assert_eq!(collecting.collect_garbage().await.unwrap().blobs, blobs.len() as u64);
    collecting.close().await;
    assert_eq!(world.store.scan(world.repository, "", None, 100).await.unwrap().len(), 10);
}

async fn an_interrupted_removal_continues(world: &World) {
    let (store, gone) = (&world.store, world.another("gone").await);
    fill(world, gone).await;
    assert!(store.delete_repository(world.organization, gone, None).await.unwrap());
    // Dropping the future in the middle of a transaction simulates a server that is killed.
    let mut removing = Box::pin(store.remove_deleted());
    let keys = |limit| async move { store.keys(gone, "", None, None, limit).await.unwrap().len() };
    loop {
        tokio::select! {
            biased;
            done = &mut removing => panic!("removed before it was observed: {done:?}"),
            left = keys(1000) => if left < MANY { break },
        }
    }
    drop(removing);
    assert!(keys(1000).await > 0, "nothing was left to remove");
    let other = Store::open(world.config.clone()).await.unwrap();
    // The killed server's claim lasts as long as a live server may be silent; then another server
    // continues.
    let begun = std::time::Instant::now();
    while other.remove_deleted().await.unwrap() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "no server continues the removal");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(keys(10).await, 0);
    other.close().await;
}

async fn other_repositories_accept_publishes_during_a_removal(world: &World) {
    let (store, gone) = (&world.store, world.another("gone").await);
    fill(world, gone).await;
    assert!(store.delete_repository(world.organization, gone, None).await.unwrap());
    let removing = tokio::spawn({
        let store = store.clone();
        async move { store.remove_deleted().await }
    });
    let mut published = 0;
    while !removing.is_finished() {
        world.put(&format!("key{published}"), "value").await;
        published += 1;
    }
    assert_eq!(removing.await.unwrap().unwrap(), 1);
    assert!(published > 10, "{published} publishes while it was removed");
}
