//! Cached reads give the same answers as fresh reads. A checker verifies random histories of
//! concurrent commits and reads. To test the checker, one history omits a dependency on purpose.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;

use packhouse_store::{
    Change, Commit, Dependencies, Entry, Expectation, ReadPoint, Store, ended_at, listed_to,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::{World, applied, commit, fewest_statements, in_both, put, wait_for_lease};

in_both! {
    histories, histories_of_two_servers, a_planted_omission_is_found, another_servers_commits_are_detected,
    blobs_of_records, a_read_is_cached_for_its_own_revision, own_commits_are_read_from_memory,
    a_longer_list_continues_a_shorter_one,
}

const WRITERS: usize = 3;
const READERS: usize = 4;
const STEPS: usize = 120;
const PREFIXES: [&str; 3] = ["a/", "b/", ""];

/// The keys and values of a repository.
type Records = BTreeMap<String, String>;

/// The answer of a read: keys with values, or keys alone with empty values.
#[derive(Clone, Debug)]
struct ReadAnswer {
    question: ReadQuery,
    answer: Records,
    /// A range of revisions; the answer must be right at one of them.
    at: RangeInclusive<u64>,
}

#[derive(Clone, Debug)]
enum ReadQuery {
    Get(String),
    Scan { prefix: &'static str, limit: u32 },
    Keys { prefix: &'static str, limit: u32 },
}

impl ReadQuery {
    fn any(random: &mut StdRng) -> ReadQuery {
        let prefix = PREFIXES[random.random_range(0..PREFIXES.len())];
        match random.random_range(0..4) {
            0 | 1 => ReadQuery::Get(key(random)),
            2 => ReadQuery::Scan { prefix, limit: random.random_range(1..6) },
            _ => ReadQuery::Keys { prefix, limit: [2, 5, 10_000][random.random_range(0..3)] },
        }
    }

    /// Answers the query, from memory where possible.
    async fn ask(&self, store: &Store, snapshot: ReadPoint, dependencies: &mut Dependencies) -> Records {
        let pair = |entry: &Entry| (entry.key.clone(), String::from_utf8(entry.value.to_vec()).unwrap());
        match self {
            ReadQuery::Get(key) => {
                dependencies.on_record(key);
                store.cached_get(snapshot, key.clone()).await.unwrap().iter().map(pair).collect()
            }
            ReadQuery::Scan { prefix, limit } => {
                let found = store.cached_scan(snapshot, prefix, None, *limit).await.unwrap();
                dependencies.on_records(prefix, None, ended_at(&found, *limit));
                found.iter().map(pair).collect()
            }
            ReadQuery::Keys { prefix, limit } => {
                let found = store.cached_keys(snapshot, prefix, None, None, *limit).await.unwrap();
                dependencies.on_records(prefix, None, listed_to(&found, None, *limit));
                found.iter().map(|key| (key.to_string(), String::new())).collect()
            }
        }
    }

    fn of(&self, records: &Records) -> Records {
        let below = |prefix: &'static str| records.iter().filter(move |(key, _)| key.starts_with(prefix));
        let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
        match self {
            ReadQuery::Get(key) => records.get_key_value(key).map(owned).into_iter().collect(),
            ReadQuery::Scan { prefix, limit } => below(prefix).take(*limit as usize).map(owned).collect(),
            ReadQuery::Keys { prefix, limit } => {
                below(prefix).take(*limit as usize).map(|(key, _)| (key.clone(), String::new())).collect()
            }
        }
    }
}

fn key(random: &mut StdRng) -> String {
    format!("{}{}", PREFIXES[random.random_range(0..2)], random.random_range(0..4))
}

/// A history: the changes by revision, and the answers to reads.
#[derive(Default)]
struct History {
    /// The first revision of the history, and the records at that time.
    base: u64,
    start: Records,
    /// The newest revision that a commit has returned to its writer.
    announced: u64,
    commits: BTreeMap<u64, Vec<Change>>,
    answers: Vec<ReadAnswer>,
}

impl History {
    /// The records after each commit.
    fn states(&self) -> Vec<Records> {
        let mut states = vec![self.start.clone()];
        for (at, changes) in &self.commits {
            assert_eq!(*at, self.base + states.len() as u64, "a revision is missing");
            let mut next = states[states.len() - 1].clone();
            for change in changes {
                match change {
                    Change::Put { key, value, .. } => {
                        next.insert(key.clone(), String::from_utf8(value.to_vec()).unwrap());
                    }
                    Change::Remove { key, .. } => drop(next.remove(key)),
                    Change::Require { .. } => {}
                }
            }
            states.push(next);
        }
        states
    }

    /// The wrong answers: those that a fresh read would not have given at any of their revisions.
    fn wrong(&self) -> Vec<&ReadAnswer> {
        let states = self.states();
        let right = |answered: &&ReadAnswer| {
            let state = |at: u64| &states[usize::try_from(at - self.base).unwrap()];
            answered.at.clone().any(|at| answered.question.of(state(at)) == answered.answer)
        };
        self.answers.iter().filter(|answered| !right(answered)).collect()
    }
}

/// The revision, as a request sees it.
async fn revision(world: &World, store: &Store) -> u64 {
    let found = store.look_up(world.organization, "main", None).await.unwrap();
    found.repository.as_ref().unwrap().revision
}

async fn write(world: &World, store: &Store, history: &Mutex<History>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for step in 0..STEPS {
        let change = |random: &mut StdRng| {
            let key = key(random);
            match random.random_range(0..3) {
                0 => Change::Remove { key, expect: Expectation::Anything },
                _ => put(&key, &format!("{seed}-{step}"), Expectation::Anything),
            }
        };
        let changes: Vec<Change> = (0..random.random_range(1..3)).map(|_| change(&mut random)).collect();
        let made = store.commit(world.repository, commit(changes.clone())).await.unwrap();
        // If a commit changes a key several times, the last change takes effect.
        let (revision, mut history) = (applied(made), history.lock().unwrap());
        history.commits.insert(revision, changes);
        history.announced = history.announced.max(revision);
    }
}

/// Reads, and caches one answer as the response cache does. The answer is valid while the store
/// reports no change of the records that it depends on.
async fn read(world: &World, store: &Store, history: &Mutex<History>, seed: u64, omit: bool) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut cached: Option<(ReadAnswer, Dependencies)> = None;
    for _ in 0..STEPS {
        let announced = history.lock().unwrap().announced;
        let before = revision(world, store).await;
        assert!(
            before >= announced,
            "revision {before} is answered after a writer was notified of {announced}"
        );
        let snapshot = ReadPoint { repository: world.repository, revision: before };
        let mut dependencies = Dependencies::default();
        let question = ReadQuery::any(&mut random);
        let answer = question.ask(store, snapshot, &mut dependencies).await;
        let answered = ReadAnswer { question, answer, at: before..=committed(world).await };
        history.lock().unwrap().answers.push(answered.clone());
        if omit {
            dependencies = Dependencies::default();
        }
        match cached.take() {
            Some((was, on)) if store.unchanged(world.repository, *was.at.start(), before, &on) => {
                // A read shortly before the notice of another server's commit may already contain
                // that server's commit.
                let newest = before.max(*was.at.end());
                let now = ReadAnswer { at: before..=newest, ..was.clone() };
                history.lock().unwrap().answers.push(now);
                cached = Some((was, on));
            }
            _ => cached = Some((answered, dependencies)),
        }
    }
}

/// Reads the current revision from the database. A read may be newer than the notices that its
/// server received.
async fn committed(world: &World) -> u64 {
    let rows = world.store.find_repositories(world.organization, &[world.repository]).await.unwrap();
    rows[0].revision
}

async fn run(world: &World, stores: [&Store; 2], omit: bool) -> History {
    let base = revision(world, stores[0]).await;
    let snapshot = ReadPoint { repository: world.repository, revision: base };
    let all = ReadQuery::Scan { prefix: "", limit: 1000 };
    let start = all.ask(stores[0], snapshot, &mut Dependencies::default()).await;
    let history = Mutex::new(History { base, start, ..History::default() });
    let writers = (0..WRITERS).map(|seed| write(world, stores[seed % 2], &history, seed as u64));
    let readers = (0..READERS).map(|seed| read(world, stores[seed % 2], &history, 100 + seed as u64, omit));
    futures::future::join(futures::future::join_all(writers), futures::future::join_all(readers)).await;
    history.into_inner().unwrap()
}

async fn histories(world: &World) {
    let history = run(world, [&world.store; 2], false).await;
    assert!(history.answers.len() > READERS * STEPS, "no cached answer was served");
    assert_eq!(history.wrong().len(), 0, "{:#?}", history.wrong());
}

/// Runs half of the writers and readers on another server.
async fn histories_of_two_servers(world: &World) {
    let other = Store::open(world.config.clone()).await.unwrap();
    world.wait_for_lease().await;
    wait_for_lease(&other).await;
    let history = run(world, [&world.store, &other], false).await;
    assert!(history.answers.len() > READERS * STEPS, "no cached answer was served");
    assert_eq!(history.wrong().len(), 0, "{:#?}", history.wrong());
    other.close().await;
}

async fn a_planted_omission_is_found(world: &World) {
    // A history may end before a wrong answer occurs, so the loop runs several.
    for _ in 0..20 {
        if !run(world, [&world.store; 2], true).await.wrong().is_empty() {
            return;
        }
    }
    panic!("the planted omission was not found");
}

/// Two servers share one database. The commits of the second are not in the first server's log, so
/// the first server must treat them as changes of everything.
async fn another_servers_commits_are_detected(world: &World) {
    let other = Store::open(world.config.clone()).await.unwrap();
    let on_a = {
        let mut on = Dependencies::default();
        on.on_record("a/1");
        on
    };
    let first = world.put("b/1", "1").await;
    let change = put("a/1", "2", Expectation::Anything);
    let second = applied(other.commit(world.repository, commit([change])).await.unwrap());
    assert!(!world.store.unchanged(world.repository, first, second, &on_a));
    let third = world.put("b/1", "3").await;
    assert!(!world.store.unchanged(world.repository, first, third, &on_a), "the second commit changed it");
    let snapshot = |revision| ReadPoint { repository: world.repository, revision };
    let value = async |at| {
        let found = world.store.cached_get(snapshot(at), "a/1".to_owned()).await.unwrap();
        found.map(|entry| entry.value.to_vec())
    };
    assert_eq!(value(third).await.as_deref(), Some("2".as_bytes()));
    let change = put("a/1", "4", Expectation::Anything);
    let fourth = applied(other.commit(world.repository, commit([change])).await.unwrap());
    assert_eq!(value(fourth).await.as_deref(), Some("4".as_bytes()));
    other.close().await;
}

async fn scan(world: &World, at: u64, limit: u32) -> Vec<String> {
    let snapshot = ReadPoint { repository: world.repository, revision: at };
    let found = world.store.cached_scan(snapshot, "a/", None, limit).await.unwrap();
    found.iter().map(|entry| entry.key.clone()).collect()
}

async fn keys(world: &World, at: u64) -> Vec<String> {
    let snapshot = ReadPoint { repository: world.repository, revision: at };
    let found = world.store.cached_keys(snapshot, "a/", None, None, 10_000).await.unwrap();
    found.iter().map(str::to_owned).collect()
}

/// A list may already contain a commit that was not yet announced to this server. The store must
/// then cache it for the revision of that commit. If the store cached it for the earlier revision,
/// a later update could leave half of the commit in the list.
async fn a_read_is_cached_for_its_own_revision(world: &World) {
    let other = Store::open(world.config.clone()).await.unwrap();
    let before = world.put("a/1", "1").await;
    let changes = [("a/2", "2"), ("a/3", "3")].map(|(key, value)| put(key, value, Expectation::Anything));
    let after = applied(other.commit(world.repository, commit(changes)).await.unwrap());
    let all = ["a/1", "a/2", "a/3"];
    assert_eq!(
        (scan(world, before, 10).await, keys(world, before).await),
        (all.map(String::from).into(), all.map(String::from).into())
    );
    let ran = fewest_statements(&world.store, 0, async || {
        assert_eq!(scan(world, after, 10).await, all);
        assert_eq!(keys(world, after).await, all);
    });
    assert_eq!(ran.await, 0, "the list was cached for an earlier revision than its own");
    other.close().await;
}

/// A read of records that this server's own commit changed runs no statement.
async fn own_commits_are_read_from_memory(world: &World) {
    let mut at = 0;
    for number in [1, 2, 3, 5] {
        at = world.put(&format!("a/{number}"), "old").await;
    }
    let snapshot = |revision| ReadPoint { repository: world.repository, revision };
    assert_eq!(scan(world, at, 4).await, ["a/1", "a/2", "a/3", "a/5"]);
    assert_eq!(keys(world, at).await.len(), 4);
    world.put("a/2", "new").await;
    let removed = Change::Remove { key: "a/3".to_owned(), expect: Expectation::Present };
    applied(world.store.commit(world.repository, commit([removed])).await.unwrap());
    let at = world.put("a/4", "new").await;
    let value = async |key: &str| {
        let found = world.store.cached_get(snapshot(at), key.to_owned()).await.unwrap();
        found.map(|entry| entry.value.to_vec())
    };
    let ran = fewest_statements(&world.store, 0, async || {
        assert_eq!(value("a/4").await.as_deref(), Some("new".as_bytes()));
        assert_eq!(value("a/3").await, None);
        assert_eq!(scan(world, at, 4).await, ["a/1", "a/2", "a/4", "a/5"]);
        assert_eq!(keys(world, at).await, ["a/1", "a/2", "a/4", "a/5"]);
        assert_eq!(scan(world, at, 2).await, ["a/1", "a/2"]);
    });
    assert_eq!(ran.await, 0, "all of it is in memory");
}

async fn a_longer_list_continues_a_shorter_one(world: &World) {
    let mut at = 0;
    for number in 1..=5 {
        at = world.put(&format!("a/{number}"), "").await;
    }
    assert_eq!(scan(world, at, 2).await, ["a/1", "a/2"]);
    assert_eq!(scan(world, at, 4).await, ["a/1", "a/2", "a/3", "a/4"]);
    let at = world.put("a/35", "").await;
    assert_eq!(scan(world, at, 4).await, ["a/1", "a/2", "a/3", "a/35"]);
    assert_eq!(scan(world, at, 10).await, ["a/1", "a/2", "a/3", "a/35", "a/4", "a/5"]);
    // The cached list covers all keys up to its last key, and no later ones.
    let at = world.put("a/6", "").await;
    assert_eq!(scan(world, at, 10).await.last().unwrap(), "a/6");
    let removed = Change::Remove { key: "a/1".to_owned(), expect: Expectation::Present };
    let at = applied(world.store.commit(world.repository, commit([removed])).await.unwrap());
    assert_eq!(scan(world, at, 1).await, ["a/2"]);
    assert_eq!(scan(world, at, 10).await.len(), 6);
}

/// A record holds the blobs that it names. A reader that found a blob relies on the record.
async fn blobs_of_records(world: &World) {
    let blob = packhouse_store::Blob::from_bytes("bytes".into());
    let sha256 = blob.sha256().await.unwrap();
    let named = |key: &str, blobs| Change::Put {
        key: key.to_owned(),
        value: "".into(),
        expect: Expectation::Anything,
        blobs,
    };
    let commit = Commit { keeps: vec![blob], ..commit([named("a", vec![sha256])]) };
    let first = applied(world.store.commit(world.repository, commit).await.unwrap());
    let snapshot = ReadPoint { repository: world.repository, revision: first };
    let found = world.store.cached_held_blob(snapshot, sha256).await.unwrap().unwrap();
    assert!(found.named);
    let mut on = Dependencies::default();
    on.on_blob(&found.blob);
    let ran = fewest_statements(&world.store, 0, async || {
        assert!(world.store.cached_held_blob(snapshot, sha256).await.unwrap().is_some());
    });
    assert_eq!(ran.await, 0, "it is in memory");
    let second = world.put("b", "").await;
    assert!(world.store.unchanged(world.repository, first, second, &on));
    let third = applied(
        world.store.commit(world.repository, crate::support::commit([named("a", Vec::new())])).await.unwrap(),
    );
    assert!(!world.store.unchanged(world.repository, first, third, &on));
}
