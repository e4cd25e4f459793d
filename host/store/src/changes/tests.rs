//! Tests of the change log, compared with a model that remembers everything.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::{ChangeLog, Dependencies, Touched};
use crate::cached_answers::AnswerChange;
use crate::catalog::CatalogChange;
use crate::ids::RepositoryId;
use crate::records::{Change, Expectation};

const REPOSITORY: RepositoryId = RepositoryId(1);

fn put(key: &str) -> Change {
    let key = key.to_owned();
    Change::Put { key, value: Bytes::new(), expect: Expectation::Anything, blobs: Vec::new() }
}

fn hide(name: &str) -> CatalogChange {
    CatalogChange::Hide { name: name.to_owned(), version: "1".to_owned() }
}

/// Adds one commit that puts these keys.
fn commit(log: &ChangeLog, revision: u64, keys: &[&str]) {
    let mut touched = Touched::from(revision);
    keys.iter().for_each(|key| touched.record(&put(key), &[]));
    log.remember(BTreeMap::from([(REPOSITORY, touched)]));
}

fn on(fill: impl FnOnce(&mut Dependencies)) -> Dependencies {
    let mut dependencies = Dependencies::default();
    fill(&mut dependencies);
    dependencies
}

#[test]
fn only_touched_content_is_changed() {
    let log = ChangeLog::default();
    commit(&log, 1, &["a/1"]);
    let mut touched = Touched::from(2);
    touched.record(&put("b/1"), &[7]);
    touched.package(&hide("lib"));
    touched.answer(&AnswerChange::Remove([1; 32]));
    log.remember(BTreeMap::from([(REPOSITORY, touched)]));
    let changed = |dependencies: &Dependencies| !log.unchanged(REPOSITORY, 1, 2, dependencies);
    for (dependencies, expected) in [
        (on(|on| on.on_record("b/1")), true),
        (on(|on| on.on_record("a/1")), false),
        (on(|on| on.on_records("b/", None, None)), true),
        (on(|on| on.on_records("a/", None, None)), false),
        (on(|on| on.on_records("b/", None, Some("b/0"))), false),
        (on(|on| on.on_records("b/", Some("b/1"), None)), false),
        (on(|on| on.on_records("", None, None)), true),
        (on(|on| on.on_package("lib")), true),
        (on(|on| on.on_package("other")), false),
        (on(Dependencies::on_all_packages), true),
        (on(|on| on.on_blob_row(7)), true),
        (on(|on| on.on_blob_row(8)), false),
        (on(|on| on.on_answer(&[1; 32])), true),
        (on(|on| on.on_answer(&[2; 32])), false),
        (on(Dependencies::on_everything), true),
        (Dependencies::default(), false),
    ] {
        assert_eq!(changed(&dependencies), expected, "{dependencies:?}");
    }
}

#[test]
fn unknown_commits_count_as_changes() {
    let log = ChangeLog::default();
    let a = on(|on| on.on_record("a"));
    assert!(!log.unchanged(REPOSITORY, 1, 2, &a), "nothing is known of the repository");
    commit(&log, 5, &["b"]);
    assert!(log.unchanged(REPOSITORY, 4, 5, &a));
    assert!(!log.unchanged(REPOSITORY, 3, 5, &a), "from before the first commit that is known");
    assert!(!log.unchanged(REPOSITORY, 4, 6, &a), "another process made the sixth");
    commit(&log, 8, &["b"]);
    assert!(!log.unchanged(REPOSITORY, 5, 8, &a), "the sixth and the seventh are missing");
    assert!(log.unchanged(REPOSITORY, 7, 8, &a));
    // A late announcement does not make a forgotten change known again.
    commit(&log, 6, &["a"]);
    assert!(!log.unchanged(REPOSITORY, 5, 8, &a));
    assert!(log.unchanged(REPOSITORY, 7, 8, &a));
}

#[test]
fn many_dependencies_are_everything() {
    let log = ChangeLog::default();
    commit(&log, 1, &["z"]);
    let many = on(|on| (0..10_000).for_each(|number| on.on_record(&number.to_string())));
    assert!(many.bytes() < 100_000 && !log.unchanged(REPOSITORY, 0, 1, &many));
}

#[test]
fn memory_is_bounded() {
    let log = ChangeLog::default();
    for revision in 1..200_000_u64 {
        commit(&log, revision, &[&revision.to_string()]);
    }
    let a = on(|on| on.on_record("a"));
    assert!(log.unchanged(REPOSITORY, 199_000, 199_999, &a));
    assert!(!log.unchanged(REPOSITORY, 1, 199_999, &a), "the oldest are forgotten");
    assert!(log.len() <= 16 * 1024);
}

/// A commit that this process observed or missed.
#[derive(Clone, Debug)]
enum Step {
    Observed(Vec<u8>),
    Missed(Vec<u8>),
}

fn key(number: u8) -> String {
    format!("{}/{}", number % 4, number / 4)
}

proptest! {
    /// Everything touched after `since` is reported as changed. Nothing else is, except because of
    /// gaps.
    #[test]
    fn no_change_is_missed(
        steps in prop::collection::vec(prop_oneof![
            6 => prop::collection::vec(0_u8..16, 0..4).prop_map(Step::Observed),
            1 => prop::collection::vec(0_u8..16, 0..4).prop_map(Step::Missed),
        ], 1..30),
        since in 0_usize..30,
        records in prop::collection::vec(0_u8..16, 0..3),
        prefixes in prop::collection::vec(0_u8..4, 0..2),
    ) {
        let log = ChangeLog::default();
        for (at, step) in steps.iter().enumerate() {
            if let Step::Observed(keys) = step {
                let keys: Vec<String> = keys.iter().copied().map(key).collect();
                commit(&log, at as u64 + 1, &keys.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        let since = since.min(steps.len());
        let dependencies = on(|on| {
            records.iter().for_each(|number| on.on_record(&key(*number)));
            prefixes.iter().for_each(|prefix| on.on_records(&format!("{prefix}/"), None, None));
        });
        let (mut touched, mut gap) = (false, false);
        for step in &steps[since..] {
            let (Step::Observed(keys) | Step::Missed(keys)) = step;
            gap |= matches!(step, Step::Missed(_));
            touched |= keys.iter().any(|number| records.contains(number) || prefixes.contains(&(number % 4)));
        }
        let unchanged = since == steps.len()
            || log.unchanged(REPOSITORY, since as u64, steps.len() as u64, &dependencies);
        prop_assert_eq!(unchanged, !(touched || gap));
    }
}
