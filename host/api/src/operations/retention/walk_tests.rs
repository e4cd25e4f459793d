//! The walk against a model that says it in as few words as can be, without an eye to memory or time.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const NOW: i64 = 100 * DAY_MS;

/// A version of a world of few names, so that they meet.
#[derive(Clone, Debug)]
struct Made {
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

impl Made {
    fn names(&self) -> (String, String) {
        names(self.package, self.version)
    }

    fn seen(&self) -> Seen {
        let (package, version) = self.names();
        Seen {
            place: 0,
            package,
            version,
            published_at: Some(self.published * DAY_MS),
            last_downloaded_at: self.downloaded.map(|at| at * DAY_MS),
            bytes: 10,
            shown_at: Some(0),
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

fn made() -> impl Strategy<Value = Made> {
    let ages = (0_i64..100, proptest::option::of(0_i64..100));
    let facts = (any::<Option<bool>>(), any::<Option<bool>>(), proptest::bool::weighted(0.1));
    let names = (0_u8..4, 0_u8..6, proptest::option::weighted(0.3, 0_u8..3));
    let needs = proptest::collection::vec((0_u8..4, 0_u8..6), 0..3);
    (names, ages, facts, needs).prop_map(
        |((package, version, unit), (published, downloaded), facts, needs)| {
            let (tagged, prerelease, follows) = facts;
            Made { package, version, published, downloaded, tagged, prerelease, follows, unit, needs }
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

/// The latest publication first, of each package, as the store has them.
fn world(mut all: Vec<Made>) -> Vec<Made> {
    let mut known = BTreeSet::new();
    all.retain(|made| known.insert((made.package, made.version)));
    all.sort_by_key(|made| Reverse((made.package, made.published, made.version)));
    all
}

fn walked(rule: &Rule, all: &[Made], most: usize) -> Found {
    let mut walk = Walk::new(rule, NOW);
    let mut package = None;
    for made in all {
        if package != Some(made.package) {
            walk.begin_package();
            package = Some(made.package);
        }
        walk.see(made.seen(), made.facts());
    }
    walk.finish(most)
}

/// What is deleted when everything may be: the words of the rule one after the other, and then what others need taken out until
/// nothing changes.
fn model(rule: &Rule, all: &[Made]) -> BTreeSet<(String, String)> {
    let newest = |made: &Made| {
        let Some(most) = rule.keep.newest else { return false };
        let mut before: Vec<String> = Vec::new();
        for other in all.iter().filter(|other| other.package == made.package && !other.follows) {
            if !before.contains(&other.unit()) {
                before.push(other.unit());
            }
        }
        before.iter().take(most as usize).any(|unit| *unit == made.unit())
    };
    let goes = |made: &&Made| {
        let (seen, facts) = (made.seen(), made.facts());
        let judged = seen.judged(&facts);
        !made.follows
            && rule.matches(Folding::None, &judged)
            && !newest(made)
            && !rule.keeps(&seen.version)
            && rule.condemns(&judged, NOW).is_some()
    };
    let mut gone: BTreeSet<(String, String)> = all.iter().filter(goes).map(Made::names).collect();
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
    fn it_deletes_what_the_model_does(rule in rules(), all in proptest::collection::vec(made(), 0..30)) {
        let all = world(all);
        let found = walked(&rule, &all, usize::MAX);
        let deleted: BTreeSet<_> = found.items.iter().map(|one| (one.seen.package.clone(), one.seen.version.clone())).collect();
        prop_assert_eq!(&deleted, &model(&rule, &all));
        prop_assert_eq!((found.versions, found.bytes, found.truncated), (deleted.len() as u64, deleted.len() as u64 * 10, false));
        let about = all.iter().filter(|made| !made.follows && rule.matches(Folding::None, &made.seen().judged(&made.facts()))).count() as u64;
        prop_assert_eq!(found.kept + found.versions, about);
    }

    #[test]
    fn whatever_it_is_cut_to_nothing_that_stays_lacks_what_it_needs(
        rule in rules(), all in proptest::collection::vec(made(), 0..30), most in 0_usize..10,
    ) {
        let all = world(all);
        let (found, whole) = (walked(&rule, &all, most), model(&rule, &all));
        prop_assert!(found.items.len() <= most);
        prop_assert_eq!(found.truncated, found.items.len() < whole.len());
        // Also when it is broken off after any of them, but for circles: there is an order in which it can go on.
        let deleted: BTreeSet<_> = found.items.iter().map(|one| (one.seen.package.clone(), one.seen.version.clone())).collect();
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

fn one(package: u8, version: u8, published: i64, needs: &[(u8, u8)]) -> Made {
    Made {
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
fn what_needs_another_goes_before_it_however_old_it_is() {
    let all = world(vec![one(0, 0, 1, &[]), one(1, 0, 5, &[(0, 0)]), one(2, 0, 3, &[(1, 0)])]);
    let order = |most: usize| {
        let found = walked(&everything(), &all, most);
        (found.items.iter().map(|one| one.seen.package.clone()).collect::<Vec<_>>(), found.truncated)
    };
    assert_eq!(order(9), (vec!["p2".to_owned(), "p1".to_owned(), "p0".to_owned()], false));
    assert_eq!(order(1), (vec!["p2".to_owned()], true));
}

#[test]
fn several_names_of_one_thing_are_one_of_the_newest() {
    let tag =
        |version: u8, published: i64, unit: u8| Made { unit: Some(unit), ..one(0, version, published, &[]) };
    let all = world(vec![tag(0, 9, 1), tag(1, 8, 1), tag(2, 7, 2), tag(3, 6, 3), tag(4, 5, 2)]);
    let mut rule = everything();
    rule.keep.newest = Some(2);
    let found = walked(&rule, &all, 9);
    assert_eq!(found.items.iter().map(|one| one.seen.version.as_str()).collect::<Vec<_>>(), ["v3"]);
}
