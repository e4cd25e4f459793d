//! Very many small files, asked for by Zipf: quiet, and while others publish into the same repository.

use crate::nginx::Nginx;
use crate::options::Options;
use crate::publishes::{Publisher, each};
use crate::table::{Goal, Row, Table, Unit};
use crate::world::{KINDS, World};
use crate::wrk::{self, Load};
use packhouse_tests::payload;
use packhouse_tests::server::OWNER;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What memory is called with so many.
const AT_CONNECTIONS: &str = "memory at 1,000 connections";
/// Publishes a second beside the reads.
const PUBLISHES: u32 = 50;
/// Seconds of load that fill the caches, of both: until nearly each path was asked for once.
const FILL_SECONDS: u32 = 60;
/// Connections that publish the files.
const WRITERS: u32 = 8;

/// Measures them, and the kept answers of the first kinds while others publish.
pub(crate) fn measure(options: &Options, world: &World, table: &mut Table) {
    let kept: Vec<_> = KINDS
        .iter()
        .filter(|kind| ["jar of 4 KiB", "packument of 30 versions"].contains(&kind.name))
        .collect();
    let names = [format!("kept, {PUBLISHES} publishes beside"), format!("Zipf, {} paths", options.paths)];
    if !wrk::available(table) {
        return;
    }
    let authorization = world.authorization();
    let load = |path: &str, accept: &'static str| Load {
        pid: world.server.pid(),
        url: format!("{}{path}", world.server.base_url()),
        authorization: &authorization,
        accept,
        script: None,
        connections: 64,
        seconds: options.seconds,
    };
    for kind in kept {
        let name = format!("{}: {}", names[0], kind.name);
        if table.wants(&name) {
            let load = load(&World::path(kind, ""), kind.accept);
            beside(world, kind.format, &name, &load, table);
        }
    }
    if !table.wants(&names[1]) && !table.wants(AT_CONNECTIONS) {
        return;
    }
    publish(options, world);
    let scripts = tempfile::tempdir().expect("a folder");
    let zipf = |name: &str, path: &str| {
        let file = scripts.path().join(name);
        // By Zipf's law with the exponent 1, numbers are even in their logarithm.
        let script = format!(
            "math.randomseed(os.time())\nlocal top = math.log({})\nfunction request()\n\
             local i = math.floor(math.exp(math.random() * top)) - 1\n return wrk.format(nil, {path}) end\n",
            options.paths + 1
        );
        fs::write(&file, script).expect("a file");
        file
    };
    let ours = zipf("ours.lua", "'/repositories/maven/com/set/a' .. i .. '/1.0/a' .. i .. '-1.0.jar'");
    let theirs = zipf("theirs.lua", "'/' .. (i % 1000) .. '/' .. i");
    let ours = Load { script: Some(&ours), ..load("", "*/*") };
    let fill = |load: &Load<'_>| Load { seconds: FILL_SECONDS, ..load.clone() }.run();
    fill(&ours);
    let nginx = Nginx::start(OWNER, &world.secret, table);
    let peer = nginx.as_ref().map(|nginx| {
        (0..options.paths)
            .for_each(|number| drop(nginx.serve(&format!("{}/{number}", number % 1000), &content(number))));
        let load = Load { pid: nginx.pid(), url: nginx.url(), script: Some(&theirs), ..ours.clone() };
        fill(&load);
        load
    });
    let loads: Vec<Load<'_>> = [ours.clone()].into_iter().chain(peer).collect();
    let mut micros = wrk::in_turn(&loads).into_iter();
    let (quiet, peer) = (micros.next().unwrap_or_default(), micros.next());
    let name = names[1].clone();
    table.add(Row { name, unit: Unit::Micros, ours: quiet, peer, goal: Goal::Ratio(0.6) });
    beside(world, "maven", &format!("{}, {PUBLISHES} publishes beside", names[1]), &ours, table);
    if table.wants(AT_CONNECTIONS) {
        Load { connections: 1000, ..ours.clone() }.run();
        let (name, ours) = (AT_CONNECTIONS.to_owned(), world.server.rss() as f64 / MIB);
        // 250 MB, as the goal is put.
        table.add(Row { name, unit: Unit::Mebibytes, ours, peer: None, goal: Goal::AtMost(238.4) });
    }
}

const MIB: f64 = 1024.0 * 1024.0;

fn content(number: u32) -> Vec<u8> {
    payload::bytes(u64::from(number), 4096)
}

fn publish(options: &Options, world: &World) {
    let publisher = Publisher::of(world.server.packages(), &world.secret);
    each(WRITERS, options.paths, &publisher, |number| {
        (format!("/repositories/maven/com/set/a{number}/1.0/a{number}-1.0.jar"), content(number))
    });
}

/// The same load quiet, before and after, and while so many publishes a second go into the repository that it reads.
fn beside(world: &World, repository: &str, name: &str, load: &Load<'_>, table: &mut Table) {
    let before = load.run().rate;
    let done = AtomicBool::new(false);
    let (busy, rate) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| pace(world, repository, &done));
        let busy = load.run();
        done.store(true, Ordering::SeqCst);
        (busy, publisher.join().expect("publishes"))
    });
    let quiet = f64::midpoint(before, load.run().rate);
    let row = |name: String, ours, peer, goal| Row { name, unit: Unit::Rate, ours, peer, goal };
    table.add(row(name.to_owned(), busy.rate, Some(quiet), Goal::Ratio(0.8)));
    // A publish that is under way at the end is not counted.
    let least = f64::from(PUBLISHES) * 0.98;
    table.add(row(format!("{name}: publishes"), rate, None, Goal::AtLeast(least)));
}

/// Publishes at an even pace until it is over; answers how many a second it were.
fn pace(world: &World, repository: &str, done: &AtomicBool) -> f64 {
    let publisher = Publisher::of(world.server.packages(), &world.secret);
    let mut connection = publisher.connect();
    let (start, mut count) = (Instant::now(), 0_u32);
    while !done.load(Ordering::SeqCst) {
        match repository {
            "npm" => crate::world::publish_npm(
                &world.client,
                "npm",
                &format!("busy{}", start.elapsed().as_nanos()),
                0,
            ),
            _ => {
                let name = format!("b{}", start.elapsed().as_nanos());
                let path = format!("/repositories/{repository}/com/busy/{name}/1.0/{name}-1.0.jar");
                publisher.put(&mut connection, &path, &content(count));
            }
        }
        count += 1;
        let next = Duration::from_secs(1) * count / PUBLISHES;
        std::thread::sleep(next.saturating_sub(start.elapsed()));
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}
