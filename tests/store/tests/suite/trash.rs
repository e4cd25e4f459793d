//! The trash: no client sees a deleted version. An undo restores the version exactly as it was,
//! even if the deletion or the undo was interrupted.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use packhouse_store::{
    ActivityOf, AuditEvent, Blob, CatalogChange, Change, Commit, DayOfActivity, Downloaded, Expectation,
    Outcome, QuotaOf, Restored, Store, StoreConfig, StoreError, TrashId, Version, VersionDetails,
    VersionFile, now_ms,
};

use crate::support::{World, applied, commit, in_both, put};

in_both! {
    a_version_is_restored_as_it_was, deletions_are_undone_in_reverse,
    records_that_a_version_relied_on_are_restored_too, changes_made_meanwhile_stay,
    an_interrupted_deletion_continues, expired_entries_are_removed, deletions_during_publishes_can_be_undone,
    an_undo_is_judged_by_the_quota, an_undo_at_its_expiry_is_complete,
}

const PACKAGE: &str = "lib";

fn event(action: &str) -> AuditEvent {
    AuditEvent { actor: "me@example.com".to_owned(), action: action.to_owned(), ..AuditEvent::default() }
}

/// Publishes a version: a record with its own blob, a record that all versions share, and a file in
/// the catalog.
async fn publish(world: &World, number: &str) {
    let blob = Blob::from_bytes(Bytes::from(format!("the bytes of {number}")));
    let sha256 = blob.sha256().await.unwrap();
    let Change::Put { key, value, expect, .. } = put(&format!("f/{number}"), number, Expectation::Anything)
    else {
        panic!("no put")
    };
    let file = Change::Put { key, value, expect, blobs: vec![sha256] };
    let shared = world.value("shared").await.unwrap_or_default() + number;
    let change = Version {
        name: PACKAGE.to_owned(),
        version: number.to_owned(),
        files: vec![VersionFile {
            path: format!("{number}.jar"),
            digest: sha256.digest(),
            size: blob.size(),
        }],
        summary: format!("about {number}"),
        properties: vec![("of".to_owned(), number.to_owned())],
        published: (number != "1").then_some(1_000_000),
        ..Version::default()
    };
    let commit = Commit {
        changes: vec![file, put("shared", &shared, Expectation::Anything)],
        catalog: vec![CatalogChange::Show(change)],
        keeps: vec![blob],
        audit: Some(AuditEvent { organization: world.organization, ..event("publish") }),
        publishes: true,
        ..Commit::default()
    };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

fn deletion(number: &str, shared: &str, entry: TrashId) -> Commit {
    let remove = |key: String| Change::Remove { key, expect: Expectation::Anything };
    let hide = CatalogChange::Hide { name: PACKAGE.to_owned(), version: number.to_owned() };
    Commit {
        changes: vec![
            remove(format!("f/{number}")),
            remove(format!("none/{number}")),
            put("shared", shared, Expectation::Anything),
            put(&format!("used/{number}"), "once", Expectation::Anything),
        ],
        catalog: vec![hide],
        trash: Some(entry),
        ..Commit::default()
    }
}

async fn delete(world: &World, number: &str, days: u64) -> TrashId {
    let (store, repository) = (&world.store, world.repository);
    let entry = store.begin_trash(repository, PACKAGE, number, "me@example.com", days).await.unwrap();
    let shared = world.value("shared").await.unwrap_or_default() + "-" + number;
    applied(store.commit(repository, deletion(number, &shared, entry)).await.unwrap());
    store.end_trash(entry).await.unwrap();
    entry
}

async fn restore(world: &World, entry: TrashId) -> Restored {
    let event = AuditEvent { organization: world.organization, ..event("restore_version") };
    world.store.restore_trash(world.repository, entry, &event).await.unwrap()
}

/// The whole state: records, published packages with their counters, and usage.
#[derive(Debug, PartialEq)]
struct WholeState {
    records: BTreeMap<String, Bytes>,
    listed: Vec<VersionDetails>,
    bytes: u64,
    versions: u64,
    activity: Vec<DayOfActivity>,
}

async fn whole(world: &World) -> WholeState {
    let records = world.store.scan(world.repository, "", None, 1000).await.unwrap();
    let mut listed = Vec::new();
    let mut versions = world.store.versions(world.repository, PACKAGE).await.unwrap();
    versions.sort_by(|one, other| one.version.cmp(&other.version));
    for version in versions {
        let details = world.store.version_details(world.repository, PACKAGE, &version.version).await.unwrap();
        listed.push(details.unwrap());
    }
    let usage = world.store.repository_usage(world.organization, &[world.repository]).await.unwrap();
    let usage = usage[&world.repository];
    WholeState {
        records: records.into_iter().map(|entry| (entry.key, entry.value)).collect(),
        listed,
        bytes: usage.bytes,
        versions: usage.versions,
        activity: world.store.activity(ActivityOf::Repository(world.repository)).await.unwrap(),
    }
}

/// Collects all unheld blobs, as a server does.
async fn collect(world: &World) {
    let config =
        StoreConfig { gc_grace: Duration::ZERO, gc_lease: Duration::from_millis(1), ..world.config.clone() };
    let other = Store::open(config).await.unwrap();
    other.collect_garbage().await.unwrap();
    other.close().await;
}

async fn a_version_is_restored_as_it_was(world: &World) {
    publish(world, "1").await;
    publish(world, "2").await;
    let file = Downloaded { repository: world.repository, path: "1.jar".into(), sha256: None, token: None };
    world.store.downloaded(file, true, now_ms());
    world.store.write_downloads().await.unwrap();
    let before = whole(world).await;
    assert_eq!((before.listed[0].downloads, before.listed[0].file_downloads["1.jar"]), (1, 1));
    let entry = delete(world, "1", 7).await;
    let trash = world.store.trash(world.repository, None, 10).await.unwrap();
    assert_eq!(trash.len(), 1);
    assert_eq!((trash[0].id, trash[0].name.as_str(), trash[0].version.as_str()), (entry, PACKAGE, "1"));
    assert_eq!((trash[0].bytes, trash[0].deleted_by.as_str()), (14, "me@example.com"));
    assert_eq!(trash[0].gone_at - trash[0].deleted_at, 7 * 24 * 60 * 60 * 1000);
    assert_eq!((world.value("f/1").await, whole(world).await.bytes), (None, 14));
    // The trash holds the blob, but a deleted version cannot be downloaded.
    collect(world).await;
    let sha256 = before.listed[0].version.files[0].digest.sha256().unwrap();
    assert!(world.store.blob(world.repository, sha256).await.unwrap().is_none());
    assert!(world.store.empty_trash().await.unwrap() == 0);
    assert_eq!(restore(world, entry).await, Restored::Done);
    assert_eq!(whole(world).await, before);
    collect(world).await;
    let blob = world.store.blob(world.repository, sha256).await.unwrap().unwrap();
    assert_eq!(blob.read_at(0, 100).await.unwrap(), Bytes::from("the bytes of 1"));
    assert_eq!(restore(world, entry).await, Restored::Gone);
    assert!(world.store.trash(world.repository, None, 10).await.unwrap().is_empty());
}

async fn deletions_are_undone_in_reverse(world: &World) {
    for number in ["1", "2", "3"] {
        publish(world, number).await;
    }
    let before = whole(world).await;
    let mut entries = Vec::new();
    for number in ["2", "1", "3"] {
        entries.push(delete(world, number, 7).await);
    }
    assert_eq!(whole(world).await.listed, []);
    for entry in entries.into_iter().rev() {
        assert_eq!(restore(world, entry).await, Restored::Done);
    }
    assert_eq!(whole(world).await, before);
}

async fn records_that_a_version_relied_on_are_restored_too(world: &World) {
    publish(world, "1").await;
    world.put("needed", "by 1").await;
    let before = whole(world).await;
    let entry = world.store.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap();
    let mut first = deletion("1", "less", entry);
    first.changes.push(Change::Require { key: "needed".to_owned(), expect: Expectation::Anything });
    applied(world.store.commit(world.repository, first).await.unwrap());
    world.store.end_trash(entry).await.unwrap();
    let gone = Change::Remove { key: "needed".to_owned(), expect: Expectation::Present };
    applied(world.store.commit(world.repository, commit([gone])).await.unwrap());
    assert_eq!(restore(world, entry).await, Restored::Done);
    assert_eq!(whole(world).await, before);
}

async fn changes_made_meanwhile_stay(world: &World) {
    publish(world, "1").await;
    let entry = delete(world, "1", 7).await;
    publish(world, "1").await;
    assert_eq!(restore(world, entry).await, Restored::Exists);
    let again = delete(world, "1", 7).await;
    publish(world, "2").await;
    let shared = world.value("shared").await;
    assert_eq!(restore(world, again).await, Restored::Done);
    assert_eq!((world.value("shared").await, world.value("f/1").await), (shared, Some("1".to_owned())));
    assert_eq!(restore(world, entry).await, Restored::Exists);
    // If two undos run concurrently, one of them restores the version.
    let entry = delete(world, "2", 7).await;
    let both = tokio::join!(restore(world, entry), restore(world, entry));
    assert!(
        matches!(both, (Restored::Done, Restored::Gone | Restored::Exists))
            || matches!(both, (Restored::Gone | Restored::Exists, Restored::Done)),
        "{both:?}"
    );
}

async fn an_interrupted_deletion_continues(world: &World) {
    publish(world, "1").await;
    world.put("more/1", "of it").await;
    let before = whole(world).await;
    let entry = world.store.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap();
    let more = Change::Remove { key: "more/1".to_owned(), expect: Expectation::Present };
    let first = Commit { trash: Some(entry), ..commit([more]) };
    applied(world.store.commit(world.repository, first).await.unwrap());
    // The trash lists only deleted versions. This deletion was killed before its commit. Another
    // server continues it, with the database as its only source.
    assert!(world.store.trash(world.repository, None, 10).await.unwrap().is_empty());
    let other = Store::open(world.config.clone()).await.unwrap();
    assert_eq!(other.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap(), entry);
    applied(other.commit(world.repository, deletion("1", "less", entry)).await.unwrap());
    // The deletion was killed after its commit but before it ended; the trash lists it all the
    // same.
    assert_eq!(other.trash(world.repository, None, 10).await.unwrap().len(), 1);
    let event = AuditEvent { organization: world.organization, ..event("restore_version") };
    assert_eq!(other.restore_trash(world.repository, entry, &event).await.unwrap(), Restored::Done);
    other.close().await;
    assert_eq!(whole(world).await, before);
    // A killed deletion does not affect a version that a client later publishes under the same
    // name.
    let open = world.store.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap();
    applied(world.store.commit(world.repository, deletion("1", "less", open)).await.unwrap());
    publish(world, "1").await;
    assert_ne!(delete(world, "1", 7).await, open);
    assert_eq!(world.store.trash(world.repository, None, 10).await.unwrap().len(), 2);
}

async fn expired_entries_are_removed(world: &World) {
    publish(world, "1").await;
    publish(world, "2").await;
    let sha256 = whole(world).await.listed[0].version.files[0].digest.sha256().unwrap();
    let (entry, remaining) = (delete(world, "1", 0).await, delete(world, "2", 7).await);
    assert_eq!(restore(world, entry).await, Restored::Gone);
    assert_eq!(world.store.trash(world.repository, None, 10).await.unwrap()[0].id, remaining);
    let held = world.store.stored_bytes(world.organization).await.unwrap();
    assert_eq!(held, 28);
    assert_eq!(world.store.empty_trash().await.unwrap(), 1);
    collect(world).await;
    assert_eq!(restore(world, remaining).await, Restored::Done);
    assert!(world.store.blob(world.repository, sha256).await.unwrap().is_none());
    // Removing the repository also removes its trash.
    delete(world, "2", 7).await;
    assert!(world.store.delete_repository(world.organization, world.repository, None).await.unwrap());
    assert_eq!(world.store.remove_deleted().await.unwrap(), 1);
}

/// Undos and the removal of expired entries run at the same time. Afterwards each version is
/// restored with its blob, or gone.
async fn an_undo_at_its_expiry_is_complete(world: &World) {
    let mut undos = Vec::new();
    for number in 0..20 {
        publish(world, &number.to_string()).await;
        let entry = delete(world, &number.to_string(), 0).await;
        undos.push((number, entry));
    }
    let (store, repository) = (world.store.clone(), world.repository);
    let emptying = tokio::spawn(async move { store.empty_trash().await.unwrap() });
    let mut back = 0;
    for (number, entry) in undos {
        // Only the commit checks the expiry, as if the entry expired just after the undo read it.
        let undo = Commit {
            undoes: Some(entry),
            ..commit([put(&format!("back/{number}"), "", Expectation::Absent)])
        };
        match world.store.commit(repository, undo).await.unwrap() {
            Outcome::Applied(_) => back += 1,
            Outcome::Stale(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(emptying.await.unwrap() + back, 20, "each version was restored or removed");
}

async fn deletions_during_publishes_can_be_undone(world: &World) {
    let numbers: Vec<String> = (10..30).map(|number| number.to_string()).collect();
    for number in &numbers {
        publish(world, number).await;
    }
    let before = whole(world).await;
    let (mut tasks, repository) = (Vec::new(), world.repository);
    for number in numbers {
        let store = world.store.clone();
        tasks.push(tokio::spawn(async move {
            let entry = store.begin_trash(repository, PACKAGE, &number, "me", 7).await.unwrap();
            let mut commit = deletion(&number, "", entry);
            commit.changes.retain(|change| change.key() != "shared");
            applied(store.commit(repository, commit).await.unwrap());
            store.end_trash(entry).await.unwrap();
        }));
        let store = world.store.clone();
        tasks.push(tokio::spawn(async move {
            let change = put("other", "x", Expectation::Anything);
            applied(store.commit(repository, commit([change])).await.unwrap());
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(whole(world).await.listed, []);
    for entry in world.store.trash(world.repository, None, 100).await.unwrap() {
        assert_eq!(restore(world, entry.id).await, Restored::Done);
    }
    let mut after = whole(world).await;
    assert!(after.records.remove("other").is_some());
    assert_eq!(after, before);
}

async fn an_undo_is_judged_by_the_quota(world: &World) {
    publish(world, "1").await;
    publish(world, "2").await;
    let before = whole(world).await;
    let entry = delete(world, "1", 7).await;
    let mut row = world.store.find_repository(world.organization, world.repository).await.unwrap().unwrap();
    row.settings = "{\"quota_bytes\":27}".into();
    assert!(world.store.update_repository(&row, false, None).await.unwrap());
    let less = whole(world).await;
    match world.store.restore_trash(world.repository, entry, &event("restore_version")).await {
        Err(StoreError::QuotaExceeded { quota }) => {
            assert_eq!((quota.of, quota.bytes, quota.used, quota.added), (QuotaOf::Repository, 27, 14, 14));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(whole(world).await, less);
    let mut row = world.store.find_repository(world.organization, world.repository).await.unwrap().unwrap();
    row.settings = "{\"quota_bytes\":28}".into();
    assert!(world.store.update_repository(&row, false, None).await.unwrap());
    assert_eq!(restore(world, entry).await, Restored::Done);
    assert_eq!(whole(world).await, before);
}
