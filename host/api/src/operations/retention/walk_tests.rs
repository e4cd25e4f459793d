//! Compares the walk with a simple model that ignores memory and time.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const NOW: i64 = 100 * DAY_MS;

/// Version with one of a few names, so that versions refer to each other.
#[derive(Clone, Debug)]
struct TestVersion {
    package: u8,
    version: u8,
    published: i64,
    downloaded: Option<i64>,
    tagged: Option<bool>,
    prerelease: Option<bool>,
    follows: bool,
    unit: Option<u8>,
    needs: Vec<(u8, u8)>,
}

impl TestVersion {
    fn names(&self) -> (String, String) {
        names(self.package, self.version)
    }

    fn stored(&self) -> StoredVersion {
        let (package, version) = self.names();
        StoredVersion {
            repository: 0,
            package,
            version,
            published_at: Some(self.published * DAY_MS),
            last_downloaded_at: self.downloaded.map(|at| at * DAY_MS),
            bytes: 10,
            first_listed_at: Some(0),
        }
    }

    fn facts(&self) -> VersionFacts {
        let needed = |needed: &(u8, u8)| {
            let (name, version) = names(needed.0, needed.1);
            NeededVersion { name, version }
        };
        VersionFacts {
            tagged: self.tagged,
            prerelease: self.prerelease,
            unit: self.unit.map(|unit| format!("u{unit}")).unwrap_or_default(),
            follows: self.follows,
            needs: self.needs.iter().map(needed).collect(),
        }
    }

    fn unit(&self) -> String {
        self.unit.map_or_else(|| self.names().1, |unit| format!("u{unit}"))
    }
}

fn names(package: u8, version: u8) -> (String, String) {
    (format!("p{package}"), format!("v{version}"))
}

fn made() -> impl Strategy<Value = TestVersion> {
    let ages = (0_i64..100, proptest::option::of(0_i64..100));
    let facts = (any::<Option<bool>>(), any::<Option<bool>>(), proptest::bool::weighted(0.1));
    let names = (0_u8..4, 0_u8..6, proptest::option::weighted(0.3, 0_u8..3));
    let needs = proptest::collection::vec((0_u8..4, 0_u8..6), 0..3);
    (names, ages, facts, needs).prop_map(
        |((package, version, unit), (published, downloaded), facts, needs)| {
            let (tagged, prerelease, follows) = facts;
            TestVersion { package, version, published, downloaded, tagged, prerelease, follows, unit, needs }
        },
    )
}

fn rules() -> impl Strategy<Value = Rule> {
    let patterns = || {
        proptest::option::of(proptest::collection::vec(
            prop_oneof!["[pv][0-5]", Just("*".to_owned()), "v[0-5]*"],
            0..3,
        ))
    };
    let days = || proptest::option::of(prop_oneof![Just(0_u32), 1_u32..100]);
    let matching = (
        patterns(),
        patterns(),
        proptest::option::weighted(0.2, any::<bool>()),
        proptest::option::weighted(0.2, any::<bool>()),
    );
    (matching, (days(), days()), (proptest::option::of(0_u32..4), patterns())).prop_map(|(matching, delete, keep)| Rule {
        repositories: super::super::rule::Reach::All,
        matching: serde_json::from_value(
            json!({"packages": matching.0, "versions": matching.1, "tagged": matching.2, "prerelease": matching.3}),
        )
        .unwrap(),
        delete: serde_json::from_value(json!({"published_before_days": delete.0, "not_downloaded_days": delete.1})).unwrap(),
        keep: serde_json::from_value(json!({"newest": keep.0, "versions": keep.1})).unwrap(),
        max_deletes: 1000,
    })
}

/// Sorts as the store does: within each package, the latest publication first.
fn sorted_versions(mut all: Vec<TestVersion>) -> Vec<TestVersion> {
    let mut known = BTreeSet::new();
    all.retain(|made| known.insert((made.package, made.version)));
    all.sort_by_key(|made| Reverse((made.package, made.published, made.version)));
    all
}

fn walked(rule: &Rule, all: &[TestVersion], most: usize) -> WalkResult {
    let mut walk = Walk::new(rule, NOW);
    let mut package = None;
    for made in all {
        if package != Some(made.package) {
            walk.begin_package();
            package = Some(made.package);
        }
        walk.add(made.stored(), made.facts());
    }
    walk.finish(most)
}

/// Versions that are deleted without a limit. Applies the parts of the rule one after the other,
/// then removes needed versions until nothing changes.
fn model(rule: &Rule, all: &[TestVersion]) -> BTreeSet<(String, String)> {
    let newest = |made: &TestVersion| {
        let Some(most) = rule.keep.newest else { return false };
        let mut before: Vec<String> = Vec::new();
        for other in all.iter().filter(|other| other.package == made.package && !other.follows) {
            if !before.contains(&other.unit()) {
                before.push(other.unit());
            }
        }
        before.iter().take(most as usize).any(|unit| *unit == made.unit())
    };
    let goes = |made: &&TestVersion| {
        let (stored, facts) = (made.stored(), made.facts());
        let input = stored.rule_input(&facts);
        !made.follows
            && rule.matches(Folding::None, &input)
            && !newest(made)
            && !rule.always_keeps(&stored.version)
            && rule.deletion_reason(&input, NOW).is_some()
    };
    let mut gone: BTreeSet<(String, String)> = all.iter().filter(goes).map(TestVersion::names).collect();
    loop {
        let held: BTreeSet<(String, String)> = all
            .iter()
            .filter(|made| !gone.contains(&made.names()))
            .flat_map(|made| made.needs.iter().copied().map(|(package, version)| names(package, version)))
            .collect();
        let before = gone.len();
        gone.retain(|names| !held.contains(names));
        if gone.len() == before {
            return gone;
        }
    }
}

proptest! {
    #[test]
    fn the_walk_deletes_the_same_versions_as_the_model(rule in rules(), all in proptest::collection::vec(made(), 0..30)) {
        let all = sorted_versions(all);
        let found = walked(&rule, &all, usize::MAX);
        let deleted: BTreeSet<_> = found.items.iter().map(|one| (one.stored.package.clone(), one.stored.version.clone())).collect();
        prop_assert_eq!(&deleted, &model(&rule, &all));
        prop_assert_eq!((found.versions, found.bytes, found.truncated), (deleted.len() as u64, deleted.len() as u64 * 10, false));
        let about = all.iter().filter(|made| !made.follows && rule.matches(Folding::None, &made.stored().rule_input(&made.facts()))).count() as u64;
        prop_assert_eq!(found.retained + found.versions, about);
    }

    #[test]
    fn a_limited_run_never_deletes_a_version_that_a_remaining_one_needs(
        rule in rules(), all in proptest::collection::vec(made(), 0..30), most in 0_usize..10,
    ) {
        let all = sorted_versions(all);
        let (found, whole) = (walked(&rule, &all, most), model(&rule, &all));
        prop_assert!(found.items.len() <= most);
        prop_assert_eq!(found.truncated, found.items.len() < whole.len());
        // Because the order respects needs, except in cycles, this also holds if the run stops
        // after any of them.
        let deleted: BTreeSet<_> = found.items.iter().map(|one| (one.stored.package.clone(), one.stored.version.clone())).collect();
        prop_assert!(deleted.is_subset(&whole));
        for made in all.iter().filter(|made| !deleted.contains(&made.names())) {
            for needed in &made.needs {
                prop_assert!(!deleted.contains(&names(needed.0, needed.1)), "{:?} lacks {needed:?}", made.names());
            }
        }
    }
}

fn everything() -> Rule {
    serde_json::from_value(
        json!({"repositories": "*", "match": {}, "delete": {"published_before_days": 0}, "keep": {}, "max_deletes": 1}),
    )
    .unwrap()
}

fn one(package: u8, version: u8, published: i64, needs: &[(u8, u8)]) -> TestVersion {
    TestVersion {
        package,
        version,
        published,
        downloaded: None,
        tagged: None,
        prerelease: None,
        follows: false,
        unit: None,
        needs: needs.to_vec(),
    }
}

#[test]
fn a_version_is_deleted_before_those_that_it_needs() {
    let all = sorted_versions(vec![one(0, 0, 1, &[]), one(1, 0, 5, &[(0, 0)]), one(2, 0, 3, &[(1, 0)])]);
    let order = |most: usize| {
        let found = walked(&everything(), &all, most);
        (found.items.iter().map(|one| one.stored.package.clone()).collect::<Vec<_>>(), found.truncated)
    };
    assert_eq!(order(9), (vec!["p2".to_owned(), "p1".to_owned(), "p0".to_owned()], false));
    assert_eq!(order(1), (vec!["p2".to_owned()], true));
}

#[test]
fn several_versions_of_one_unit_count_once_among_the_newest() {
    let tag = |version: u8, published: i64, unit: u8| TestVersion {
        unit: Some(unit),
        ..one(0, version, published, &[])
    };
    let all = sorted_versions(vec![tag(0, 9, 1), tag(1, 8, 1), tag(2, 7, 2), tag(3, 6, 3), tag(4, 5, 2)]);
    let mut rule = everything();
    rule.keep.newest = Some(2);
    let found = walked(&rule, &all, 9);
    assert_eq!(found.items.iter().map(|one| one.stored.version.as_str()).collect::<Vec<_>>(), ["v3"]);
}
