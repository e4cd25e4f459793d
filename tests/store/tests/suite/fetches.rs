//! Downloads with tokens. The store records them by version and day, and deletes the records after
//! some time. If a client uses another name for a file, the store identifies the file by the digest
//! of the bytes.

use bytes::Bytes;
use packhouse_store::{
    Blob, CatalogChange, Change, Commit, Days, Downloaded, Expectation, Sha256, TokenId, Version,
    VersionFile, now_ms,
};

use crate::support::{World, applied, in_both};

in_both! { a_tokens_downloads_are_recorded_by_day, downloads_are_counted_by_bytes }

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A version with one file, whose path is its name and its number.
fn show(name: &str, number: &str) -> CatalogChange {
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

async fn a_tokens_downloads_are_recorded_by_day(world: &World) {
    let (store, own, token) = (&world.store, world.repository, TokenId(7));
    commit(world, vec![show("a", "1"), show("a", "2"), show("b", "1")]).await;
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
    // The downloads are not in order of time, and some are further apart than one row can record.
    for (path, back) in
        [("a/1", 9), ("a/1", 2), ("a/1", 5), ("a/2", 70), ("a/2", 0), ("b/1", 1), ("b/1", 80), ("x", 0)]
    {
        fetch(token, path, back).await;
    }
    fetch(TokenId(8), "b/1", 9).await;
    let downloads = store.version_details(own, "b", "1").await.unwrap().unwrap().downloads;
    assert_eq!(downloads, 3, "the sum over all tokens");
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
    assert_eq!(fetched(100, 0).await, ["a 2", "b 1"], "earlier downloads stay recorded");
    assert_eq!(store.forget_fetches(0).await.unwrap(), 2);
}

/// A client may fetch the same bytes by another name, such as an image by its digest instead of its
/// tag. The digest identifies the file even if the version's last commit did not contain the bytes.
async fn downloads_are_counted_by_bytes(world: &World) {
    let count = async |sha256: Sha256| {
        let (repository, path) = (world.repository, "a/by-digest".into());
        world.store.downloaded(
            Downloaded { repository, path, sha256: Some(sha256), token: None },
            true,
            1000,
        );
        world.store.write_downloads().await.unwrap();
        world.store.version_details(repository, "a", "1").await.unwrap().unwrap().downloads
    };
    // The file is published before its bytes are stored, as with an upstream file. This server
    // cannot have served it yet.
    let sha256 = Sha256::of(b"a/1");
    commit(world, vec![show("a", "1")]).await;
    assert_eq!(count(sha256).await, 0);
    let (key, value, expect) = ("file/a/1".to_owned(), Bytes::new(), Expectation::Anything);
    let changes = vec![Change::Put { key, value, expect, blobs: vec![sha256] }];
    let (catalog, keeps) = (vec![show("a", "1")], vec![Blob::from_bytes(Bytes::from("a/1"))]);
    let with_bytes = Commit { changes, catalog, keeps, ..Commit::default() };
    applied(world.store.commit(world.repository, with_bytes).await.unwrap());
    assert_eq!(count(sha256).await, 1);
    // This commit publishes the version again and does not contain the bytes.
    commit(world, vec![show("a", "1")]).await;
    assert_eq!(count(sha256).await, 2);
    // The version now has other bytes at the path, so a download of the old bytes is not counted.
    let CatalogChange::Show(mut version) = show("a", "1") else { unreachable!() };
    version.files[0].digest = Sha256::of(b"other").digest();
    commit(world, vec![CatalogChange::Show(version)]).await;
    assert_eq!(count(sha256).await, 2);
}
