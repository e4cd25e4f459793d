//! Reads of records in the order of their keys, compared with a map in memory.

use std::collections::{BTreeMap, BTreeSet};

use packhouse_store::{Expectation, Outcome};
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::support::{World, commit, fewest_statements, in_both, put};

in_both! {
    like_a_map_in_memory, keys_are_in_the_order_of_their_bytes, a_level_of_a_large_tree_is_one_statement,
    a_scan_is_at_most_one_mebibyte,
}

/// Keys of few characters, so that prefixes and delimiters occur often.
fn key() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec!['a', 'B', '/', '.', '0', '\u{1}', 'é', '\u{7f}', '\u{10ffff}', '\u{e000}']),
        1..7,
    )
    .prop_map(|characters| characters.into_iter().collect())
}

async fn like_a_map_in_memory(world: &World) {
    let mut runner = TestRunner::deterministic();
    for case in 0..12 {
        let repository = world.another(&format!("case-{case}")).await;
        let map = btree_map(key(), "[a-z]{0,3}", 0..60).new_tree(&mut runner).unwrap().current();
        let changes = map.iter().map(|(key, value)| put(key, value, Expectation::Absent));
        assert!(matches!(
            world.store.commit(repository, commit(changes)).await.unwrap(),
            Outcome::Applied(1)
        ));
        for _ in 0..25 {
            let texts = [key(), key()].map(|text| text.new_tree(&mut runner).unwrap().current());
            let choice = (0_usize..4, 1_u32..8, any::<bool>()).new_tree(&mut runner).unwrap().current();
            let prefix: String = texts[0].chars().take(choice.0).collect();
            let after = choice.2.then_some(texts[1].as_str());
            let found = world.store.scan(repository, &prefix, after, choice.1).await.unwrap();
            let found: Vec<_> = found.into_iter().map(|entry| entry.key).collect();
            assert_eq!(found, level(&map, &prefix, None, after, choice.1), "scan {prefix:?} {after:?}");
            for delimiter in [None, Some('/'), Some('.'), Some('\u{7f}'), Some('é')] {
                let found = world.store.keys(repository, &prefix, delimiter, after, choice.1).await.unwrap();
                let expected = level(&map, &prefix, delimiter, after, choice.1);
                assert_eq!(found, expected, "{prefix:?} {delimiter:?} {after:?} of {map:?}");
            }
        }
        pages(world, repository, &map).await;
    }
}

/// Asserts that the pages together contain every key once.
async fn pages(world: &World, repository: packhouse_store::RepositoryId, map: &BTreeMap<String, String>) {
    for delimiter in [None, Some('/')] {
        let mut all = Vec::new();
        loop {
            let after = all.last().cloned();
            let page = world.store.keys(repository, "", delimiter, after.as_deref(), 3).await.unwrap();
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        assert_eq!(all, level(map, "", delimiter, None, 10_000));
    }
}

/// The answer of `keys` by its specification, computed from the map.
fn level(
    map: &BTreeMap<String, String>,
    prefix: &str,
    delimiter: Option<char>,
    after: Option<&str>,
    limit: u32,
) -> Vec<String> {
    let cut = |key: &String| match delimiter.and_then(|d| Some((d, key.strip_prefix(prefix)?.find(d)?))) {
        Some((delimiter, at)) => key[..prefix.len() + at + delimiter.len_utf8()].to_owned(),
        None => key.clone(),
    };
    let cut_keys: BTreeSet<String> = map.keys().filter(|key| key.starts_with(prefix)).map(cut).collect();
    // `after` is cut at the delimiter like a key; the page continues after the result.
    let after =
        after.map(|after| if after.starts_with(prefix) { cut(&after.to_owned()) } else { after.to_owned() });
    cut_keys
        .into_iter()
        .filter(|key| after.as_ref().is_none_or(|after| key > after))
        .take(limit as usize)
        .collect()
}

async fn keys_are_in_the_order_of_their_bytes(world: &World) {
    let mut keys = ["a", "B", "Z", "_", "a-b", "a.b", "a/b", "ä", "aa", "ab", "A", "\u{ffff}", "\u{10000}"];
    for key in keys {
        world.put(key, "").await;
    }
    keys.sort_unstable();
    assert_eq!(world.store.keys(world.repository, "", None, None, 100).await.unwrap(), keys);
}

async fn a_level_of_a_large_tree_is_one_statement(world: &World) {
    let changes = (0..5000).map(|n| put(&format!("group/{}/{n}", n % 3), "", Expectation::Absent));
    world.store.commit(world.repository, commit(changes)).await.unwrap();
    let ran = fewest_statements(&world.store, 1, async || {
        let level = world.store.keys(world.repository, "group/", Some('/'), None, 10_000).await.unwrap();
        assert_eq!(level, ["group/0/", "group/1/", "group/2/"]);
    });
    assert_eq!(ran.await, 1);
}

async fn a_scan_is_at_most_one_mebibyte(world: &World) {
    let value = "x".repeat(400 << 10);
    for key in ["a", "b", "c"] {
        world.put(key, &value).await;
    }
    let page = world.store.scan(world.repository, "", None, 10).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let page = world.store.scan(world.repository, "", Some("b"), 10).await.unwrap();
    assert_eq!(page.len(), 1);
    world.put("d", &"x".repeat(1 << 20)).await;
    let page = world.store.scan(world.repository, "", Some("c"), 10).await.unwrap();
    assert_eq!(page[0].value.len(), 1 << 20);
}
