//! Commits: expectations, outcomes, revisions, and many of them at once.

use std::collections::BTreeSet;

use bytes::Bytes;
use packhouse_store::{Blob, Change, Commit, Expectation, Outcome, RepositoryId, Sha256, StoreError};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::support::{World, applied, commit, in_both, put};

in_both! {
    expectations, the_first_stale_key_is_reported, a_stale_commit_changes_nothing,
    the_last_change_of_a_key_counts, revisions_are_never_used_again, unknown_blobs,
    a_record_may_name_a_stored_blob, a_blob_of_another_repository_is_unknown, one_of_many_is_first,
    all_of_many_are_applied, commits_of_one_batch_see_each_other, limits, no_such_repository,
    many_statements_for_many_commits_are_few,
}

async fn expectations(world: &World) {
    let (store, repository) = (&world.store, world.repository);
    let try_put = |key: &'static str, expect| async move {
        store.commit(repository, commit([put(key, "value", expect)])).await.unwrap()
    };
    assert_eq!(try_put("a", Expectation::Present).await, Outcome::Stale("a".to_owned()));
    assert_eq!(try_put("a", Expectation::Revision(1)).await, Outcome::Stale("a".to_owned()));
    let first = applied(try_put("a", Expectation::Absent).await);
    assert_eq!(try_put("a", Expectation::Absent).await, Outcome::Stale("a".to_owned()));
    assert_eq!(try_put("a", Expectation::Revision(first + 1)).await, Outcome::Stale("a".to_owned()));
    let second = applied(try_put("a", Expectation::Revision(first)).await);
    assert!(second > first);
    let third = applied(try_put("a", Expectation::Present).await);
    let entry = store.get(repository, "a").await.unwrap().unwrap();
    assert_eq!((entry.key.as_str(), entry.revision), ("a", third));
}

async fn the_first_stale_key_is_reported(world: &World) {
    let changes = [
        put("fine", "", Expectation::Absent),
        Change::Require { key: "z".to_owned(), expect: Expectation::Present },
        Change::Remove { key: "b".to_owned(), expect: Expectation::Present },
    ];
    let outcome = world.store.commit(world.repository, commit(changes)).await.unwrap();
    assert_eq!(outcome, Outcome::Stale("z".to_owned()));
}

async fn a_stale_commit_changes_nothing(world: &World) {
    let revision = world.put("kept", "before").await;
    let changes = [
        put("kept", "after", Expectation::Anything),
        Change::Remove { key: "gone".to_owned(), expect: Expectation::Present },
    ];
    let outcome = world.store.commit(world.repository, commit(changes)).await.unwrap();
    assert_eq!(outcome, Outcome::Stale("gone".to_owned()));
    assert_eq!(world.value("kept").await.as_deref(), Some("before"));
    assert_eq!(world.put("next", "").await, revision + 1);
}

async fn the_last_change_of_a_key_counts(world: &World) {
    let changes = [
        put("a", "1", Expectation::Present),
        put("b", "2", Expectation::Absent),
        put("a", "3", Expectation::Absent),
    ];
    applied(world.store.commit(world.repository, commit(changes)).await.unwrap());
    assert_eq!(world.value("a").await.as_deref(), Some("3"));
}

async fn revisions_are_never_used_again(world: &World) {
    let mut past_revisions = BTreeSet::new();
    for _ in 0..5 {
        assert!(past_revisions.insert(world.put("key", "value").await));
        let remove = Change::Remove { key: "key".to_owned(), expect: Expectation::Present };
        assert!(
            past_revisions
                .insert(applied(world.store.commit(world.repository, commit([remove])).await.unwrap()))
        );
        assert_eq!(world.value("key").await, None);
    }
    assert!(past_revisions.iter().zip(past_revisions.iter().skip(1)).all(|(one, next)| one < next));
}

fn named(key: &str, blobs: Vec<Sha256>) -> Change {
    Change::Put { key: key.to_owned(), value: Bytes::new(), expect: Expectation::Anything, blobs }
}

async fn unknown_blobs(world: &World) {
    let (one, two) = (Sha256([1; 32]), Sha256([2; 32]));
    let changes = [named("a", vec![one, two]), named("b", vec![one])];
    let outcome = world.store.commit(world.repository, commit(changes)).await.unwrap();
    assert_eq!(outcome, Outcome::UnknownBlobs(vec![one, two]));
    assert_eq!(world.value("a").await, None);
}

async fn a_record_may_name_a_stored_blob(world: &World) {
    let blob = Blob::from_bytes(Bytes::from_static(b"bytes"));
    let sha256 = blob.sha256().await.unwrap();
    let with = Commit { changes: vec![named("a", vec![sha256])], keeps: vec![blob], ..Commit::default() };
    applied(world.store.commit(world.repository, with).await.unwrap());
    // Now the record and the pin hold the blob.
    applied(world.store.commit(world.repository, commit([named("b", vec![sha256])])).await.unwrap());
    let other = Blob::from_bytes(Bytes::from_static(b"others"));
    world.store.keep(world.repository, std::slice::from_ref(&other)).await.unwrap();
    let sha256 = other.sha256().await.unwrap();
    applied(world.store.commit(world.repository, commit([named("c", vec![sha256])])).await.unwrap());
}

async fn a_blob_of_another_repository_is_unknown(world: &World) {
    let blob = Blob::from_bytes(Bytes::from_static(b"secret"));
    let sha256 = blob.sha256().await.unwrap();
    world.store.keep(world.another("other").await, &[blob]).await.unwrap();
    let outcome = world.store.commit(world.repository, commit([named("a", vec![sha256])])).await.unwrap();
    assert_eq!(outcome, Outcome::UnknownBlobs(vec![sha256]));
}

async fn at_once(world: &World, commits: Vec<(RepositoryId, Commit)>) -> Vec<Outcome> {
    let tasks: Vec<_> = commits
        .into_iter()
        .map(|(repository, commit)| {
            let store = world.store.clone();
            tokio::spawn(async move { store.commit(repository, commit).await.unwrap() })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn one_of_many_is_first(world: &World) {
    let commits = (0..64)
        .map(|n| {
            (
                world.repository,
                commit([
                    put("contested", &n.to_string(), Expectation::Absent),
                    put(&format!("of/{n}"), "", Expectation::Anything),
                ]),
            )
        })
        .collect();
    let outcomes = at_once(world, commits).await;
    let stale = outcomes.iter().filter(|outcome| **outcome == Outcome::Stale("contested".to_owned())).count();
    assert_eq!(stale, 63);
    // Only the successful commit left its record.
    let left = world.store.keys(world.repository, "of/", None, None, 100).await.unwrap();
    let winner = world.value("contested").await.unwrap();
    assert_eq!(left, [format!("of/{winner}")]);
}

async fn all_of_many_are_applied(world: &World) {
    let other = world.another("other").await;
    let commits = (0..200)
        .map(|n| {
            let repository = if n % 2 == 0 { world.repository } else { other };
            (repository, commit([put(&format!("key/{n}"), &n.to_string(), Expectation::Absent)]))
        })
        .collect();
    let mut revisions: Vec<u64> = at_once(world, commits).await.into_iter().map(applied).collect();
    revisions.sort_unstable();
    let expected: Vec<u64> = (1..=100).flat_map(|revision| [revision, revision]).collect();
    assert_eq!(revisions, expected);
    assert_eq!(world.store.keys(other, "key/", None, None, 1000).await.unwrap().len(), 100);
}

async fn commits_of_one_batch_see_each_other(world: &World) {
    // Each task adds one to a counter at the revision that it read, and tries again after a lost
    // race.
    world.put("counter", "0").await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (store, repository) = (world.store.clone(), world.repository);
            tokio::spawn(async move {
                loop {
                    let entry = store.get(repository, "counter").await.unwrap().unwrap();
                    let count: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    let next =
                        put("counter", &(count + 1).to_string(), Expectation::Revision(entry.revision));
                    if let Outcome::Applied(_) = store.commit(repository, commit([next])).await.unwrap() {
                        return;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(world.value("counter").await.as_deref(), Some("16"));
}

async fn limits(world: &World) {
    let long = "k".repeat(1025);
    for key in ["", "a\0b", long.as_str()] {
        let result =
            world.store.commit(world.repository, commit([put(key, "", Expectation::Anything)])).await;
        assert!(matches!(result, Err(StoreError::Invalid(_))), "{key:?}");
    }
    let large = put("large", &"x".repeat((1 << 20) + 1), Expectation::Anything);
    assert!(matches!(
        world.store.commit(world.repository, commit([large])).await,
        Err(StoreError::Invalid(_))
    ));
    let most = (0..10_000).map(|n| put(&format!("many/{n}"), "", Expectation::Absent));
    applied(world.store.commit(world.repository, commit(most)).await.unwrap());
    let more = (0..10_001).map(|n| put(&format!("more/{n}"), "", Expectation::Absent));
    assert!(matches!(world.store.commit(world.repository, commit(more)).await, Err(StoreError::Invalid(_))));
    assert_eq!(world.store.get(world.repository, "a\0b").await.unwrap(), None);
}

async fn no_such_repository(world: &World) {
    let change = || commit([put("a", "", Expectation::Anything)]);
    assert!(matches!(world.store.commit(RepositoryId(7), change()).await, Err(StoreError::Invalid(_))));
    applied(world.store.commit(world.repository, change()).await.unwrap());
}

async fn many_statements_for_many_commits_are_few(world: &World) {
    let before = world.store.statements();
    let commits = (0..400)
        .map(|n| (world.repository, commit([put(&format!("k{n}"), "", Expectation::Absent)])))
        .collect();
    at_once(world, commits).await;
    let ran = world.store.statements() - before;
    assert!(ran < 400, "{ran} statements for 400 commits");
}

/// Another server commits while this server's statement waits for the repository's row. The
/// statement must then read that commit, not the state at its own start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_commit_reads_the_commit_it_waited_for() {
    let Some(world) = World::postgres().await else { return };
    world.put("b", "1").await;
    let mut other = PgConnection::connect(&world.config.database_url).await.unwrap();
    let id = world.repository;
    for sql in [
        "BEGIN; SET LOCAL packhouse.announces = 'all'".to_owned(),
        format!("UPDATE repositories SET revision = revision + 1 WHERE id = {id}"),
        format!("INSERT INTO records (repository, key, value, revision) VALUES ({id}, 'a', '', 2)"),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut other).await.unwrap();
    }
    let store = world.store.clone();
    let absent = tokio::spawn(async move {
        let puts = [put("a", "mine", Expectation::Absent), put("b", "2", Expectation::Present)];
        store.commit(id, commit(puts)).await.unwrap()
    });
    // This needs a connection of its own: within a transaction, PostgreSQL reads the list of
    // waiting sessions only once.
    let mut watching = PgConnection::connect(&world.config.database_url).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut watching).await.unwrap() == 0 {
        assert!(!absent.is_finished(), "it did not wait");
        tokio::task::yield_now().await;
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(absent.await.unwrap(), Outcome::Stale("a".to_owned()));
    assert_eq!(world.value("b").await.as_deref(), Some("1"));
    assert_eq!(world.put("b", "3").await, 3);
}
