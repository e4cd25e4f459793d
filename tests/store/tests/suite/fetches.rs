//! What tokens fetched: by version and day, forgotten with time.

use packhouse_store::{
    CatalogChange, Commit, Days, Downloaded, Sha256, TokenId, Version, VersionFile, now_ms,
};

use crate::support::{World, applied, in_both};

in_both! { what_a_token_fetched_is_known_by_day }

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A version of one file, whose path is its name and its number.
fn shown(name: &str, number: &str) -> CatalogChange {
    let path = format!("{name}/{number}");
    let file = VersionFile { digest: Sha256::of(path.as_bytes()).digest(), path, size: 1 };
    CatalogChange::Show(Version {
        name: name.to_owned(),
        version: number.to_owned(),
        files: vec![file],
        ..Version::default()
    })
}

async fn commit(world: &World, catalog: Vec<CatalogChange>) {
    let commit = Commit { catalog, ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn what_a_token_fetched_is_known_by_day(world: &World) {
    let (store, own, token) = (&world.store, world.repository, TokenId(7));
    commit(world, vec![shown("a", "1"), shown("a", "2"), shown("b", "1")]).await;
    let fetch = async |token: TokenId, path: &str, back: i64| {
        let what = Downloaded { repository: own, path: path.into(), sha256: None, token: Some(token) };
        store.downloaded(what, true, now_ms() - back * DAY);
        store.write_downloads().await.unwrap();
    };
    let fetched = async |first: i64, last: i64| {
        let (mut found, mut after) = (Vec::new(), Default::default());
        let days = Days::between(now_ms() - first * DAY, now_ms() - last * DAY);
        loop {
            let page = store.fetched_versions(token, own, days, &after, 1).await.unwrap();
            found.extend(page.versions.into_iter().map(|(name, version)| format!("{name} {version}")));
            match page.next {
                Some(next) => after = next,
                None => return found,
            }
        }
    };
    // Newer behind older, older behind newer, and further apart than a row tells of.
    for (path, back) in
        [("a/1", 9), ("a/1", 2), ("a/1", 5), ("a/2", 70), ("a/2", 0), ("b/1", 1), ("b/1", 80), ("x", 0)]
    {
        fetch(token, path, back).await;
    }
    fetch(TokenId(8), "b/1", 9).await;
    let downloads = store.version_details(own, "b", "1").await.unwrap().unwrap().downloads;
    assert_eq!(downloads, 3, "of all tokens together");
    assert_eq!(fetched(100, 0).await, ["a 1", "a 2", "b 1"]);
    for (day, expected) in [
        (9, vec!["a 1"]),
        (8, vec![]),
        (5, vec!["a 1"]),
        (2, vec!["a 1"]),
        (1, vec!["b 1"]),
        (0, vec!["a 2"]),
        (70, vec![]),
    ] {
        assert_eq!(fetched(day, day).await, expected, "{day} days ago");
    }
    assert_eq!((store.forget_fetches(2).await.unwrap(), store.forget_fetches(2).await.unwrap()), (2, 0));
    assert_eq!(fetched(100, 0).await, ["a 2", "b 1"]);
    commit(world, vec![CatalogChange::Hide { name: "b".to_owned(), version: "1".to_owned() }]).await;
    assert_eq!(fetched(100, 0).await, ["a 2", "b 1"], "what was fetched was fetched");
    assert_eq!(store.forget_fetches(0).await.unwrap(), 2);
}
