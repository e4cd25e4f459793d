//! Upstream answers that proxies cache: the store finds them again, protects their blobs from
//! garbage collection, evicts and purges them.

use bytes::Bytes;
use packhouse_store::{
    Blob, CacheName, CacheTotals, CachedAnswer, CatalogChange, CatalogFile, CatalogState, Commit,
    Dependencies, RepositoryId, Version, now_ms,
};

use crate::support::{World, applied, in_both};

in_both! {
    an_answer_is_found_as_it_was_cached, cached_answers_hold_their_bytes,
    the_least_used_answer_is_evicted_first, a_purge_selects_by_target,
    a_cached_file_is_published_without_changing_its_version, values_derived_from_an_answer_end_with_it,
    credentials_are_found,
}

const LARGE: usize = 100_000;

fn answer(number: u8, target: &str, body: Option<Vec<u8>>) -> CachedAnswer {
    CachedAnswer {
        name: name(number),
        method: "GET".to_owned(),
        target: target.to_owned(),
        status: 200,
        headers: vec![("etag".to_owned(), format!("\"{number}\""))],
        address: format!("https://upstream.test{target}"),
        blob: body.map(|bytes| Blob::from_bytes(Bytes::from(bytes))),
        fetched_at: now_ms(),
        validated_at: now_ms(),
    }
}

fn name(number: u8) -> CacheName {
    [number; 32]
}

async fn keep(world: &World, number: u8, target: &str, bytes: usize) {
    let answer = answer(number, target, Some(vec![number; bytes]));
    world.store.cache(world.repository, &answer, None).await.unwrap();
}

async fn there(world: &World, repository: RepositoryId, number: u8) -> bool {
    world.store.cached(repository, &name(number)).await.unwrap().is_some()
}

async fn an_answer_is_found_as_it_was_cached(world: &World) {
    let store = &world.store;
    for (number, body) in [(1, None), (2, Some(vec![7; 10])), (3, Some(vec![8; LARGE]))] {
        let cached = answer(number, "/a", body.clone());
        store.cache(world.repository, &cached, None).await.unwrap();
        let found = store.cached(world.repository, &name(number)).await.unwrap().unwrap();
        assert_eq!((found.status, &found.headers, &found.address), (200, &cached.headers, &cached.address));
        assert_eq!((found.fetched_at, found.validated_at), (cached.fetched_at, cached.validated_at));
        let bytes = match found.blob {
            Some(blob) => Some(blob.read_at(0, 1 << 20).await.unwrap().to_vec()),
            None => None,
        };
        assert_eq!(bytes, body);
    }
    let changed = CachedAnswer { status: 404, blob: None, ..answer(2, "/b", None) };
    store.cache(world.repository, &changed, None).await.unwrap();
    let found = store.cached(world.repository, &name(2)).await.unwrap().unwrap();
    assert_eq!((found.status, found.target.as_str(), found.blob.is_none()), (404, "/b", true));
    store.cache_validated(world.repository, &name(2), 5).await.unwrap();
    assert_eq!(store.cached(world.repository, &name(2)).await.unwrap().unwrap().validated_at, 5);
    let other = world.another("other").await;
    assert!(!there(world, other, 1).await, "the other repository has no such answer");
    store.uncache(world.repository, &name(1)).await.unwrap();
    assert!(!there(world, world.repository, 1).await);
}

async fn cached_answers_hold_their_bytes(world: &World) {
    let mut config = world.config.clone();
    config.gc_grace = std::time::Duration::ZERO;
    config.gc_lease = std::time::Duration::ZERO;
    let store = packhouse_store::Store::open(config).await.unwrap();
    for (number, target) in [(1, "/kept"), (2, "/purged")] {
        let answer = answer(number, target, Some(vec![number; LARGE]));
        store.cache(world.repository, &answer, None).await.unwrap();
    }
    store.purge_cache(world.repository, "/purged").await.unwrap();
    let mut collected = 0;
    for _ in 0..2 {
        collected += store.collect_garbage().await.unwrap().blobs;
    }
    assert_eq!(collected, 1, "the blob of the purged answer");
    let blob = store.cached(world.repository, &name(1)).await.unwrap().unwrap().blob.unwrap();
    assert_eq!(blob.read_at(0, 10).await.unwrap(), vec![1; 10]);
    let totals = CacheTotals { entries: 1, bytes: LARGE as u64 };
    assert_eq!(store.cache_totals(world.repository).await.unwrap(), totals);
    store.close().await;
}

async fn the_least_used_answer_is_evicted_first(world: &World) {
    for number in 1..=4 {
        keep(world, number, &format!("/{number}"), 1000).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    world.store.cache_used(world.repository, &name(1));
    assert_eq!(world.store.shrink_cache(world.repository, 4000).await.unwrap(), 0);
    assert_eq!(world.store.shrink_cache(world.repository, 2500).await.unwrap(), 2);
    let mut left = Vec::new();
    for number in 1..=4 {
        left.extend(there(world, world.repository, number).await.then_some(number));
    }
    assert_eq!(left, [1, 4]);
    assert_eq!(world.store.shrink_cache(world.repository, 0).await.unwrap(), 2);
}

async fn a_purge_selects_by_target(world: &World) {
    for (number, target) in [(1, "/a/b"), (2, "/a/c"), (3, "/ab"), (4, "/é%_")] {
        keep(world, number, target, 10).await;
    }
    let page = world.store.cache_page(world.repository, "/a", 1, 10).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.target.as_str()).collect::<Vec<_>>(), ["/a/c", "/ab"]);
    assert_eq!(world.store.purge_cache(world.repository, "/a/").await.unwrap(), 2);
    assert_eq!(world.store.purge_cache(world.repository, "/é%").await.unwrap(), 1);
    assert_eq!(world.store.purge_cache(world.repository, "").await.unwrap(), 1);
}

async fn a_cached_file_is_published_without_changing_its_version(world: &World) {
    let (repository, store) = (world.repository, &world.store);
    let yanked = Version {
        name: "lib".to_owned(),
        version: "1".to_owned(),
        published: Some(5),
        state: "yanked".to_owned(),
        summary: "A library".to_owned(),
        ..Version::default()
    };
    let catalog = vec![CatalogChange::Show(yanked)];
    applied(store.commit(repository, Commit { catalog, ..Commit::default() }).await.unwrap());
    for (number, version) in [(1, "1"), (2, "2")] {
        let answer = answer(number, "/a", Some(vec![1; 10]));
        let file = CatalogFile::of(answer.blob.as_ref().unwrap(), "lib", version, "lib.jar").await.unwrap();
        store.cache(repository, &answer, Some(file)).await.unwrap();
    }
    let versions = store.versions(repository, "lib").await.unwrap();
    let one = versions.iter().find(|version| version.version == "1").unwrap();
    assert_eq!((one.state.as_str(), one.summary.as_str(), one.files.len()), ("yanked", "A library", 1));
    let state = |published: Option<u64>, state: &str| CatalogState { published, state: state.to_owned() };
    assert_eq!(store.catalog_state(repository, "lib", "1").await.unwrap(), state(Some(5), "yanked"));
    assert_eq!(store.catalog_state(repository, "lib", "2").await.unwrap(), state(None, ""));
    assert_eq!(store.catalog_state(repository, "lib", "3").await.unwrap(), state(None, ""));
    assert_eq!(store.search(repository, "lib", 0, 10).await.unwrap().total, 1);
}

async fn revision(world: &World) -> u64 {
    let found = world.store.find_repository(world.organization, world.repository).await.unwrap();
    found.unwrap().revision
}

async fn values_derived_from_an_answer_end_with_it(world: &World) {
    let (repository, store) = (world.repository, &world.store);
    keep(world, 1, "/a", 1000).await;
    let of = |number: u8| {
        let mut dependencies = Dependencies::default();
        dependencies.on_answer(&name(number));
        dependencies
    };
    let (one, two) = (of(1), of(2));
    let mut before = revision(world).await;
    // Returns two flags: true if the values that were derived from the first and from the second
    // answer are still valid since the previous call.
    let mut good = async || {
        let since = std::mem::replace(&mut before, revision(world).await);
        [&one, &two].map(|made_of| store.unchanged(repository, since, before, made_of))
    };
    store.cache_used(repository, &name(1));
    store.write_cache_use().await.unwrap();
    store.cache_validated(repository, &name(1), now_ms()).await.unwrap();
    assert_eq!(good().await, [true, true], "the answer is the same as before");
    keep(world, 1, "/a", 2000).await;
    assert_eq!(good().await, [false, true], "replaced");
    keep(world, 2, "/b", 1000).await;
    assert_eq!(good().await, [true, false], "there was no answer before");
    store.uncache(repository, &name(1)).await.unwrap();
    assert_eq!(good().await, [false, true], "removed");
    keep(world, 3, "/c", 1000).await;
    assert_eq!(good().await, [true, true]);
    assert_eq!(store.shrink_cache(repository, 1000).await.unwrap(), 1);
    assert_eq!(good().await, [true, false], "it was evicted");
    store.purge_cache(repository, "/none").await.unwrap();
    assert_eq!(good().await, [false, false], "a purge invalidates everything");
    keep(world, 1, "/a", 10).await;
    assert_eq!(good().await, [false, true], "and new values are valid again");
}

async fn credentials_are_found(world: &World) {
    let store = &world.store;
    assert_eq!(store.upstream_credentials(world.repository).await.unwrap(), None);
    for sealed in [Some("v1.x"), Some("v1.y"), None] {
        let set = store.set_upstream_credentials(world.repository, sealed, None).await.unwrap();
        assert!(set);
        assert_eq!(store.upstream_credentials(world.repository).await.unwrap().as_deref(), sealed);
    }
}
