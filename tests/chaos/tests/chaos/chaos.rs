//! Small rounds of load and faults. They take minutes with `PACKHOUSE_TEST_LONG`. `just chaos
//! --minutes 60` runs rounds for an hour.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

use packhouse_chaos::checker::{Rule, check};
use packhouse_chaos::cluster::Cluster;
use packhouse_chaos::faults::Fault;
use packhouse_chaos::formats::Format;
use packhouse_chaos::history::{Event, Operation, Outcome, Way};
use packhouse_chaos::load::{KnownVersion, Load};
use packhouse_chaos::plant::PLANTS;
use packhouse_chaos::report::Report;
use packhouse_chaos::round::{Plan, RoundStage};
use packhouse_chaos::tokens::Tokens;
use packhouse_chaos::verify;
use packhouse_tests::{Client, Request, long};
use std::time::Duration;

/// A selection of the faults that need little time and have found the most bugs.
const SMALL: [Fault; 10] = [
    Fault::ServerKilled,
    Fault::ServerStopped,
    Fault::ServerCutOff,
    Fault::ClockJump,
    Fault::ConnectionsCut,
    Fault::DatabaseRestart,
    Fault::RowLocked,
    Fault::Failover,
    Fault::S3Hangs,
    Fault::S3ObjectsLost,
];

fn seed() -> u64 {
    std::env::var("PACKHOUSE_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn in_order(report: &Report) {
    println!("{}", report.text());
    assert!(report.violations.is_empty(), "{}\n{}", report.text(), report.logs);
    others_go_on(report);
    for rolling in &report.rolling {
        assert!(rolling.requests > 20 && rolling.failed == 0, "{}", report.text());
    }
}

#[test]
fn nothing_is_lost_and_the_checker_finds_planted_faults() {
    let plan = Plan {
        seed: seed(),
        servers: 3,
        faults: if long() { Fault::ALL.to_vec() } else { SMALL.to_vec() },
        rounds: 1,
        time: Duration::from_secs(if long() { 240 } else { 0 }),
        hold: Duration::from_millis(if long() { 3_000 } else { 1_000 }),
        rolling: 2,
    };
    let mut stage = RoundStage::start(plan.servers).unwrap();
    let report = stage.play(&plan, |cluster, load, tokens, report| {
        in_order(report);
        plant_in_the_history(report);
        plant_in_the_cluster(cluster, load, tokens);
    });
    assert!(report.tries_of_revoked() > 500, "{}", report.text());
}

/// Asserts that other repositories accepted publishes while a row of one repository was locked.
fn others_go_on(report: &Report) {
    let locked = report.incidents.iter().filter(|incident| incident.name == Fault::RowLocked.name());
    let (mut times, mut published) = (0, 0);
    for incident in locked {
        times += 1;
        let inside = |event: &&Event| event.begun >= incident.begun && event.ended <= incident.ended;
        let elsewhere = |event: &&Event| {
            event.outcome == Outcome::Done
                && matches!(&event.what, Operation::Publish { path, .. } if !path.starts_with("npm/"))
        };
        published += report.events.iter().filter(inside).filter(elsewhere).count();
    }
    assert!(times > 0 && published > 0, "{}", report.text());
}

#[test]
fn two_servers_are_enough() {
    if !long() {
        return packhouse_tests::skip("chaos with two servers", "with PACKHOUSE_TEST_LONG alone");
    }
    let plan = Plan {
        seed: seed(),
        servers: 2,
        faults: Fault::ALL.to_vec(),
        rounds: 1,
        time: Duration::from_secs(120),
        hold: Duration::from_secs(3),
        rolling: 2,
    };
    in_order(&RoundStage::start(plan.servers).unwrap().play(&plan, |_, _, _, _| ()));
}

/// Plants each fault in the history, and asserts that the checker finds it.
fn plant_in_the_history(report: &Report) {
    for plant in PLANTS {
        let planted =
            plant.planted(&report.events).unwrap_or_else(|| panic!("no event to plant {} in", plant.name));
        let found = check(&planted);
        assert!(found.iter().any(|violation| violation.rule == plant.rule), "{}: {found:#?}", plant.name);
    }
}

/// Changes the cluster's database and S3 directly, and asserts that the checker finds each change.
fn plant_in_the_cluster(cluster: &mut Cluster, load: &Load<'_>, tokens: &Tokens<'_>) {
    let events = || load.history.since(0);
    // A lost row: the newest file disappears, and the index no longer lists it.
    let there = |known: &KnownVersion| load.read(known, Way::Server(0), false) == Outcome::Done;
    let known = load.known().into_iter().rev().filter(|known| known.format == Format::Maven);
    let lost = known.into_iter().find(there).expect("some file is left");
    let key = format!("%{}-{}.jar%", lost.package, lost.version);
    let gone = cluster.postgres.query(&format!("delete from records where key like '{key}' returning key"));
    assert!(!gone.is_empty(), "no record has a key like {key}");

    // A revocation that is undone in the database.
    let token = tokens.last_revoked().expect("a token was revoked");
    let secret = "update tokens set revoked_at = null, ends_at = null where id = (select max(id) from tokens where revoked_at is not null)";
    cluster.postgres.sql(secret);

    // A file in S3 whose bytes change.
    let object =
        cluster.s3.keys().into_iter().find(|key| key.starts_with("blobs/") && !key.contains("canary"));
    let object = object.expect("something is in S3");
    cluster.s3.remove(&object);

    // The servers still have the right bytes in their caches; a restart makes them read S3 again.
    cluster.nodes.iter_mut().for_each(|node| node.server.restart());

    // An object that no server knows. This change comes last, because garbage collection removes
    // the object after the grace period.
    let stray = Request::new("PUT", "/bucket/blobs/zz/stray").body("x");
    Client::new(cluster.s3.endpoint()).send(stray).expect(200);
    let begun = load.history.now();
    let storage = verify::counted(cluster);
    load.history.record(begun, Way::Balanced, storage, Outcome::Done, true);
    verify::read_all(load, tokens, cluster.nodes.len());
    let found = check(&events());
    let has = |rule: Rule, words: &str| {
        let matching =
            found.iter().any(|one| one.rule == rule && format!("{:?}", one.event.what).contains(words));
        assert!(
            matching,
            "{rule:?} of {words} is not found: {:#?}",
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        );
    };
    has(Rule::Lost, &format!("{}/{}", lost.package, lost.version));
    has(Rule::Storage, "missing: 1, orphans: 1");
    assert!(
        found.iter().any(|one| one.rule == Rule::Lost && one.event.outcome == Outcome::Damaged),
        "{object} is removed, and it is not found"
    );
    assert!(
        found.iter().any(|one| one.rule == Rule::Revoked && matches!(&one.event.what, Operation::Use { .. })),
        "{token} is accepted again, and it is not found"
    );
}
