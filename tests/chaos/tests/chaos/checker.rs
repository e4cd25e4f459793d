//! The checker alone: a correct history passes, and every planted fault is found by its rule.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use packhouse_chaos::checker::{Rule, UNACKNOWLEDGED, check};
use packhouse_chaos::history::{Event, Operation, Outcome, Way};
use packhouse_chaos::plant::PLANTS;
use std::collections::BTreeSet;

fn event(begun: u64, ended: u64, way: Way, what: Operation, outcome: Outcome) -> Event {
    Event { begun, ended, way, what, outcome, last: false }
}

fn publish(begun: u64, ended: u64, path: &str, digest: &str, outcome: Outcome) -> Event {
    let what = Operation::Publish { path: path.into(), digest: digest.into(), once: true };
    event(begun, ended, Way::Balanced, what, outcome)
}

fn read(begun: u64, ended: u64, path: &str, digest: &str, outcome: Outcome) -> Event {
    event(begun, ended, Way::Server(0), Operation::Read { path: path.into(), digest: digest.into() }, outcome)
}

fn delete(begun: u64, ended: u64, path: &str, outcome: Outcome) -> Event {
    event(begun, ended, Way::Balanced, Operation::Delete { path: path.into() }, outcome)
}

fn lost(begun: u64, ended: u64, digest: &str) -> Event {
    event(begun, ended, Way::Balanced, Operation::Loss { digest: digest.into() }, Outcome::Done)
}

fn damaged(begun: u64, ended: u64, path: &str) -> Event {
    read(begun, ended, path, "", Outcome::Damaged)
}

fn index(begun: u64, ended: u64, listed: &[&str]) -> Event {
    let listed: BTreeSet<String> = listed.iter().map(|version| (*version).to_owned()).collect();
    event(begun, ended, Way::Server(0), Operation::Index { package: "f/p".into(), listed }, Outcome::Done)
}

fn token(begun: u64, ended: u64, what: fn(String) -> Operation, outcome: Outcome) -> Event {
    event(begun, ended, Way::Balanced, what("t".into()), outcome)
}

fn made(token: String) -> Operation {
    Operation::Create { token }
}

fn revoked(token: String) -> Operation {
    Operation::Revoke { token }
}

fn used(token: String) -> Operation {
    Operation::Use { token }
}

fn last(mut event: Event) -> Event {
    event.last = true;
    event
}

/// A short, correct history with an event for every planted fault.
fn in_order() -> Vec<Event> {
    vec![
        // No fault can be planted in the events of the paths 0 and 4, because either outcome of
        // their reads is right.
        publish(1, 2, "f/p/0", "none", Outcome::Done),
        delete(3, 6, "f/p/0", Outcome::Done),
        read(4, 5, "f/p/0", "none", Outcome::Done),
        publish(1, 3, "f/p/4", "four", Outcome::Broken),
        delete(4, 6, "f/p/4", Outcome::Done),
        publish(10, 20, "f/p/1", "one", Outcome::Done),
        publish(10, 21, "f/p/1", "other", Outcome::Conflict),
        read(15, 19, "f/p/1", "", Outcome::NotThere),
        read(20, 25, "f/p/1", "one", Outcome::Done),
        publish(30, 40, "f/p/2", "two", Outcome::Done),
        delete(50, 60, "f/p/2", Outcome::Done),
        read(55, 58, "f/p/2", "two", Outcome::Done),
        read(61, 65, "f/p/2", "", Outcome::NotThere),
        publish(70, 80, "f/p/3", "three", Outcome::Broken),
        index(62, 90, &["1"]),
        publish(30, 40, "g/q/1", "gone", Outcome::Done),
        lost(50, 52, "gone"),
        damaged(51, 55, "g/q/1"),
        publish(60, 70, "g/q/2", "gone", Outcome::Done),
        damaged(69, 75, "g/q/1"),
        read(70, 80, "g/q/1", "gone", Outcome::Done),
        token(10, 20, made, Outcome::Done),
        token(21, 22, used, Outcome::Done),
        token(30, 40, revoked, Outcome::Broken),
        token(35, 45, used, Outcome::Done),
        token(50, 60, revoked, Outcome::Done),
        token(55, 65, used, Outcome::Done),
        token(60, 70, used, Outcome::Refused),
        token(58, 71, used, Outcome::Refused),
        last(read(100, 101, "f/p/1", "one", Outcome::Done)),
        last(read(100, 101, "f/p/2", "", Outcome::NotThere)),
        last(read(100, 101, "f/p/3", "three", Outcome::Done)),
        last(index(102, 103, &["1", "3"])),
        last(event(
            110,
            120,
            Way::Balanced,
            Operation::Storage { missing: 0, orphans: 0, unnamed: 0, unfinished: 0 },
            Outcome::Done,
        )),
    ]
}

#[test]
fn a_correct_history_passes_and_every_planted_fault_is_found() {
    let events = in_order();
    let found = check(&events);
    assert!(found.is_empty(), "{found:#?}");
    for plant in PLANTS {
        let planted = plant.planted(&events).unwrap();
        let found = check(&planted);
        assert!(found.iter().any(|violation| violation.rule == plant.rule), "{}: {found:#?}", plant.name);
    }
}

/// Tests each rule at its bound: up to the bound both outcomes are right, and one step later is a
/// violation.
#[test]
fn each_rule_is_exact_at_its_bounds() {
    let none: &[Rule] = &[];
    let cases: [(&str, Vec<Event>, &[Rule]); 11] = [
        (
            "a read that began before the acknowledgement",
            vec![publish(10, 20, "f/p/1", "a", Outcome::Done), read(19, 30, "f/p/1", "", Outcome::NotThere)],
            none,
        ),
        (
            "a read that began at the acknowledgement",
            vec![publish(10, 20, "f/p/1", "a", Outcome::Done), read(20, 30, "f/p/1", "", Outcome::NotThere)],
            &[Rule::Lost],
        ),
        (
            "a publish without an answer that never took effect",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Broken),
                read(20, 30, "f/p/1", "", Outcome::NotThere),
            ],
            none,
        ),
        (
            "a version that was read, and is not found elsewhere for a moment",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Broken),
                read(20, 30, "f/p/1", "a", Outcome::Done),
                read(31, 40, "f/p/1", "", Outcome::NotThere),
            ],
            none,
        ),
        (
            "and not afterwards",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Broken),
                read(20, 30, "f/p/1", "a", Outcome::Done),
                read(30 + UNACKNOWLEDGED, 40 + UNACKNOWLEDGED, "f/p/1", "", Outcome::NotThere),
            ],
            &[Rule::Lost],
        ),
        (
            "a deletion without an answer",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Done),
                delete(30, 40, "f/p/1", Outcome::Away),
                read(50, 60, "f/p/1", "a", Outcome::Done),
                read(70, 80, "f/p/1", "", Outcome::NotThere),
            ],
            none,
        ),
        (
            "a second attempt after one without an answer",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Broken),
                publish(30, 40, "f/p/1", "a", Outcome::Conflict),
                read(50, 60, "f/p/1", "a", Outcome::Done),
            ],
            none,
        ),
        (
            "the loser's bytes",
            vec![
                publish(10, 20, "f/p/1", "a", Outcome::Done),
                publish(10, 20, "f/p/1", "b", Outcome::Conflict),
                read(50, 60, "f/p/1", "b", Outcome::Done),
            ],
            &[Rule::Bytes],
        ),
        (
            "an index made before a publish was acknowledged",
            vec![publish(10, 20, "f/p/1", "a", Outcome::Done), index(19, 30, &[])],
            none,
        ),
        ("an index with a version that nobody published", vec![index(19, 30, &["9"])], &[Rule::Index]),
        (
            "a token whose revocation was never answered, refused after the request",
            vec![
                token(10, 20, made, Outcome::Done),
                token(30, 40, revoked, Outcome::Broken),
                token(35, 45, used, Outcome::Refused),
                token(50, 60, used, Outcome::Done),
            ],
            none,
        ),
    ];
    for (name, events, rules) in cases {
        let found: Vec<Rule> = check(&events).iter().map(|violation| violation.rule).collect();
        assert_eq!(found, rules, "{name}");
    }
}

/// A read may report a file as lost after the loss of its object. It must not do so after a repair:
/// a publish of the same bytes that began after the loss and was acknowledged.
#[test]
fn a_loss_may_be_reported_until_its_repair_is_acknowledged() {
    let published = publish(10, 20, "f/p/1", "a", Outcome::Done);
    let history = |events: &[Event]| [&[published.clone(), lost(30, 32, "a")][..], events].concat();
    let repair = |begun, ended, outcome| publish(begun, ended, "f/p/2", "a", outcome);
    let none: &[Rule] = &[];
    let cases: [(&str, Vec<Event>, &[Rule]); 12] = [
        ("a read that ended before the loss", vec![damaged(25, 29, "f/p/1")], &[Rule::Lost]),
        ("a read that ended during the loss", vec![damaged(25, 30, "f/p/1")], none),
        ("a read that finds the bytes in memory", vec![read(40, 45, "f/p/1", "a", Outcome::Done)], none),
        ("a read that finds no file", vec![read(40, 45, "f/p/1", "", Outcome::NotThere)], &[Rule::Lost]),
        (
            "a read that began before the repair was acknowledged",
            vec![repair(50, 60, Outcome::Done), damaged(59, 70, "f/p/1")],
            none,
        ),
        (
            "a read that began at that time, of either path",
            vec![repair(50, 60, Outcome::Done), damaged(60, 70, "f/p/1"), damaged(60, 70, "f/p/2")],
            &[Rule::Lost, Rule::Lost],
        ),
        (
            "a repair that was not acknowledged",
            vec![repair(50, 60, Outcome::Broken), damaged(70, 80, "f/p/1")],
            none,
        ),
        (
            "a publish that began before the loss was over",
            vec![repair(31, 60, Outcome::Done), damaged(70, 80, "f/p/1")],
            none,
        ),
        (
            "a second loss",
            vec![repair(50, 60, Outcome::Done), lost(70, 71, "a"), damaged(80, 90, "f/p/1")],
            none,
        ),
        (
            "a second loss that is repaired as well",
            vec![
                repair(50, 60, Outcome::Done),
                lost(70, 71, "a"),
                publish(72, 80, "f/p/3", "a", Outcome::Done),
                damaged(80, 90, "f/p/1"),
            ],
            &[Rule::Lost],
        ),
        (
            "a file with other bytes",
            vec![publish(10, 20, "f/p/4", "b", Outcome::Done), damaged(40, 45, "f/p/4")],
            &[Rule::Lost],
        ),
        ("a publish that reports the loss", vec![repair(50, 60, Outcome::Damaged)], &[Rule::Answer]),
    ];
    for (name, events, rules) in cases {
        let found: Vec<Rule> = check(&history(&events)).iter().map(|violation| violation.rule).collect();
        assert_eq!(found, rules, "{name}");
    }
}
