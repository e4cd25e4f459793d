//! Small rounds of load and faults; minutes of them with `PACKHOUSE_TEST_LONG`, an hour by `just chaos --minutes 60`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_chaos::checker::{Rule, check};
use packhouse_chaos::cluster::Cluster;
use packhouse_chaos::faults::Fault;
use packhouse_chaos::formats::Format;
use packhouse_chaos::history::{Event, Outcome, Way, What};
use packhouse_chaos::load::{Known, Load};
use packhouse_chaos::plant::PLANTS;
use packhouse_chaos::report::Report;
use packhouse_chaos::round::{Plan, Stage};
use packhouse_chaos::tokens::Tokens;
use packhouse_chaos::verify;
use packhouse_tests::{Client, Request, long};
use std::time::Duration;

/// Those that need the least time and have the most to say.
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
fn nothing_is_lost_and_the_checker_finds_what_is_planted() {
    let plan = Plan {
        seed: seed(),
        servers: 3,
        faults: if long() { Fault::ALL.to_vec() } else { SMALL.to_vec() },
        rounds: 1,
        time: Duration::from_secs(if long() { 240 } else { 0 }),
        hold: Duration::from_millis(if long() { 3_000 } else { 1_000 }),
        rolling: 2,
    };
    let mut stage = Stage::set(plan.servers).unwrap();
    let report = stage.play(&plan, |cluster, load, tokens, report| {
        in_order(report);
        plant_in_the_history(report);
        plant_in_the_cluster(cluster, load, tokens);
    });
    assert!(report.tries_of_revoked() > 500, "{}", report.text());
}

/// While a row of one repository is locked, the others take publishes.
fn others_go_on(report: &Report) {
    let locked = report.incidents.iter().filter(|incident| incident.name == Fault::RowLocked.name());
    let (mut times, mut published) = (0, 0);
    for incident in locked {
        times += 1;
        let inside = |event: &&Event| event.begun >= incident.begun && event.ended <= incident.ended;
        let elsewhere = |event: &&Event| {
            event.outcome == Outcome::Done
                && matches!(&event.what, What::Publish { path, .. } if !path.starts_with("npm/"))
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
    in_order(&Stage::set(plan.servers).unwrap().play(&plan, |_, _, _, _| ()));
}

/// What a server with such a fault would have shown its clients, in the place of what they saw.
fn plant_in_the_history(report: &Report) {
    for plant in PLANTS {
        let planted =
            plant.planted(&report.events).unwrap_or_else(|| panic!("nothing to plant {} in", plant.name));
        let found = check(&planted);
        assert!(found.iter().any(|violation| violation.rule == plant.rule), "{}: {found:#?}", plant.name);
    }
}

/// Faults of the cluster itself, made behind the servers' backs.
fn plant_in_the_cluster(cluster: &mut Cluster, load: &Load<'_>, tokens: &Tokens<'_>) {
    let events = || load.history.since(0);
    // A lost row: the newest file that is there is not there any more, and its index does not tell of it.
    let there = |known: &Known| load.read(known, Way::Server(0), false) == Outcome::Done;
    let known = load.known().into_iter().rev().filter(|known| known.format == Format::Maven);
    let lost = known.into_iter().find(there).expect("some file is left");
    let key = format!("%{}-{}.jar%", lost.package, lost.version);
    let gone = cluster.postgres.query(&format!("delete from records where key like '{key}' returning key"));
    assert!(!gone.is_empty(), "no record has a key like {key}");

    // A revocation that was undone.
    let token = tokens.last_revoked().expect("a token was revoked");
    let secret = "update tokens set revoked_at = null, ends_at = null where id = (select max(id) from tokens where revoked_at is not null)";
    cluster.postgres.sql(secret);

    // A file behind everybody's back, one of those in S3.
    let object =
        cluster.s3.keys().into_iter().find(|key| key.starts_with("blobs/") && !key.contains("canary"));
    let object = object.expect("something is in S3");
    cluster.s3.remove(&object);

    // What servers keep in memory was right: what they read now is not.
    cluster.nodes.iter_mut().for_each(|node| node.server.restart());

    // An object that nobody knows of: the last, for it is collected once the grace time is over.
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
        found.iter().any(|one| one.rule == Rule::Revoked && matches!(&one.event.what, What::Use { .. })),
        "{token} is accepted again, and it is not found"
    );
}
