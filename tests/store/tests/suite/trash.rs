//! The trash: what was deleted is gone for everybody and comes back as it was, wherever it was cut off.

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
    a_version_comes_back_as_it_was, deletions_are_undone_in_reverse, what_was_relied_on_comes_back_too,
    what_others_did_meanwhile_stays, a_deletion_that_was_cut_off_goes_on, what_is_over_is_gone,
    deletions_beside_publishes_keep_what_was_there, an_undo_is_judged_by_the_quota,
    an_undo_beside_the_end_of_its_time_is_whole,
}

const PACKAGE: &str = "lib";

fn event(action: &str) -> AuditEvent {
    AuditEvent { actor: "me@example.com".to_owned(), action: action.to_owned(), ..AuditEvent::default() }
}

/// A version with a file of its own, a record that all share, and a file that is shown with it.
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

/// All that there is: records, what is shown with its counters, and usage.
#[derive(Debug, PartialEq)]
struct Whole {
    records: BTreeMap<String, Bytes>,
    shown: Vec<VersionDetails>,
    bytes: u64,
    versions: u64,
    activity: Vec<DayOfActivity>,
}

async fn whole(world: &World) -> Whole {
    let records = world.store.scan(world.repository, "", None, 1000).await.unwrap();
    let mut shown = Vec::new();
    let mut versions = world.store.versions(world.repository, PACKAGE).await.unwrap();
    versions.sort_by(|one, other| one.version.cmp(&other.version));
    for version in versions {
        let details = world.store.version_details(world.repository, PACKAGE, &version.version).await.unwrap();
        shown.push(details.unwrap());
    }
    let usage = world.store.repository_usage(world.organization, &[world.repository]).await.unwrap();
    let usage = usage[&world.repository];
    Whole {
        records: records.into_iter().map(|entry| (entry.key, entry.value)).collect(),
        shown,
        bytes: usage.bytes,
        versions: usage.versions,
        activity: world.store.activity(ActivityOf::Repository(world.repository)).await.unwrap(),
    }
}

/// A server that collects whatever nothing holds.
async fn collect(world: &World) {
    let config =
        StoreConfig { gc_grace: Duration::ZERO, gc_lease: Duration::from_millis(1), ..world.config.clone() };
    let other = Store::open(config).await.unwrap();
    other.collect_garbage().await.unwrap();
    other.close().await;
}

async fn a_version_comes_back_as_it_was(world: &World) {
    publish(world, "1").await;
    publish(world, "2").await;
    let file = Downloaded { repository: world.repository, path: "1.jar".into(), sha256: None, token: None };
    world.store.downloaded(file, true, now_ms());
    world.store.write_downloads().await.unwrap();
    let before = whole(world).await;
    assert_eq!((before.shown[0].downloads, before.shown[0].file_downloads["1.jar"]), (1, 1));
    let entry = delete(world, "1", 7).await;
    let trash = world.store.trash(world.repository, None, 10).await.unwrap();
    assert_eq!(trash.len(), 1);
    assert_eq!((trash[0].id, trash[0].name.as_str(), trash[0].version.as_str()), (entry, PACKAGE, "1"));
    assert_eq!((trash[0].bytes, trash[0].deleted_by.as_str()), (14, "me@example.com"));
    assert_eq!(trash[0].gone_at - trash[0].deleted_at, 7 * 24 * 60 * 60 * 1000);
    assert_eq!((world.value("f/1").await, whole(world).await.bytes), (None, 14));
    // Held, but not to be had: what is deleted is deleted.
    collect(world).await;
    let sha256 = before.shown[0].version.files[0].digest.sha256().unwrap();
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
    assert_eq!(whole(world).await.shown, []);
    for entry in entries.into_iter().rev() {
        assert_eq!(restore(world, entry).await, Restored::Done);
    }
    assert_eq!(whole(world).await, before);
}

async fn what_was_relied_on_comes_back_too(world: &World) {
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

async fn what_others_did_meanwhile_stays(world: &World) {
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
    // Of two at once one brings it back.
    let entry = delete(world, "2", 7).await;
    let both = tokio::join!(restore(world, entry), restore(world, entry));
    assert!(
        matches!(both, (Restored::Done, Restored::Gone | Restored::Exists))
            || matches!(both, (Restored::Gone | Restored::Exists, Restored::Done)),
        "{both:?}"
    );
}

async fn a_deletion_that_was_cut_off_goes_on(world: &World) {
    publish(world, "1").await;
    world.put("more/1", "of it").await;
    let before = whole(world).await;
    let entry = world.store.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap();
    let more = Change::Remove { key: "more/1".to_owned(), expect: Expectation::Present };
    let first = Commit { trash: Some(entry), ..commit([more]) };
    applied(world.store.commit(world.repository, first).await.unwrap());
    // Nothing is in the trash that is not gone. Another server goes on where this one is killed: with nothing but the database.
    assert!(world.store.trash(world.repository, None, 10).await.unwrap().is_empty());
    let other = Store::open(world.config.clone()).await.unwrap();
    assert_eq!(other.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap(), entry);
    applied(other.commit(world.repository, deletion("1", "less", entry)).await.unwrap());
    // Killed before it ended: it is in the trash all the same.
    assert_eq!(other.trash(world.repository, None, 10).await.unwrap().len(), 1);
    let event = AuditEvent { organization: world.organization, ..event("restore_version") };
    assert_eq!(other.restore_trash(world.repository, entry, &event).await.unwrap(), Restored::Done);
    other.close().await;
    assert_eq!(whole(world).await, before);
    // One that was killed before it ended has nothing to do with what is published under the name later.
    let open = world.store.begin_trash(world.repository, PACKAGE, "1", "me", 7).await.unwrap();
    applied(world.store.commit(world.repository, deletion("1", "less", open)).await.unwrap());
    publish(world, "1").await;
    assert_ne!(delete(world, "1", 7).await, open);
    assert_eq!(world.store.trash(world.repository, None, 10).await.unwrap().len(), 2);
}

async fn what_is_over_is_gone(world: &World) {
    publish(world, "1").await;
    publish(world, "2").await;
    let sha256 = whole(world).await.shown[0].version.files[0].digest.sha256().unwrap();
    let (entry, kept) = (delete(world, "1", 0).await, delete(world, "2", 7).await);
    assert_eq!(restore(world, entry).await, Restored::Gone);
    assert_eq!(world.store.trash(world.repository, None, 10).await.unwrap()[0].id, kept);
    let held = world.store.stored_bytes(world.organization).await.unwrap();
    assert_eq!(held, 28);
    assert_eq!(world.store.empty_trash().await.unwrap(), 1);
    collect(world).await;
    assert_eq!(restore(world, kept).await, Restored::Done);
    assert!(world.store.blob(world.repository, sha256).await.unwrap().is_none());
    // With its repository goes all of it.
    delete(world, "2", 7).await;
    assert!(world.store.delete_repository(world.organization, world.repository, None).await.unwrap());
    assert_eq!(world.store.remove_deleted().await.unwrap(), 1);
}

/// Undos and the removal of what is over, at once: each version is back with its blob, or gone.
async fn an_undo_beside_the_end_of_its_time_is_whole(world: &World) {
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
        // Judged in the commit alone, as where its time is over just after it was looked at.
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
    assert_eq!(emptying.await.unwrap() + back, 20, "each went one way");
}

async fn deletions_beside_publishes_keep_what_was_there(world: &World) {
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
    assert_eq!(whole(world).await.shown, []);
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
