//! Reads of very many small files with a Zipf distribution, with and without concurrent publishes
//! into the same repository.

use crate::bench_server::{BenchServer, KINDS};
use crate::nginx::Nginx;
use crate::options::Options;
use crate::publishes::{Publisher, publish_all};
use crate::table::{Goal, ResultRow, ResultTable, Unit};
use crate::wrk::{self, WrkLoad};
use packhouse_tests::payload;
use packhouse_tests::server::OWNER;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Name of the row for memory with many connections.
const AT_CONNECTIONS: &str = "memory at 1,000 connections";
/// Publishes per second during the reads.
const PUBLISHES: u32 = 50;
/// Seconds of load that fill the caches of both servers. Within this time, the load requests nearly
/// every path.
const FILL_SECONDS: u32 = 60;
/// Number of connections that publish the files.
const WRITERS: u32 = 8;

/// Measures the working set, and cached responses of two kinds during publishes.
pub(crate) fn measure(options: &Options, bench: &BenchServer, table: &mut ResultTable) {
    let kinds: Vec<_> = KINDS
        .iter()
        .filter(|kind| ["jar of 4 KiB", "packument of 30 versions"].contains(&kind.name))
        .collect();
    let names = [format!("cached, {PUBLISHES} publishes/s"), format!("Zipf, {} paths", options.paths)];
    if !wrk::available(table) {
        return;
    }
    let authorization = bench.authorization();
    let load = |path: &str, accept: &'static str| WrkLoad {
        pid: bench.server.pid(),
        url: format!("{}{path}", bench.server.base_url()),
        authorization: &authorization,
        accept,
        script: None,
        connections: 64,
        seconds: options.seconds,
    };
    for kind in kinds {
        let name = format!("{}: {}", names[0], kind.name);
        if table.selects(&name) {
            let load = load(&BenchServer::path(kind, ""), kind.accept);
            measure_while_publishing(bench, kind.format, &name, &load, table);
        }
    }
    if !table.selects(&names[1]) && !table.selects(AT_CONNECTIONS) {
        return;
    }
    publish(options, bench);
    let scripts = tempfile::tempdir().expect("a folder");
    let zipf = |name: &str, path: &str| {
        let file = scripts.path().join(name);
        // With a Zipf exponent of 1, the logarithms of the numbers are uniformly distributed.
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
    let ours = WrkLoad { script: Some(&ours), ..load("", "*/*") };
    let fill = |load: &WrkLoad<'_>| WrkLoad { seconds: FILL_SECONDS, ..load.clone() }.run();
    fill(&ours);
    let nginx = Nginx::start(OWNER, &bench.secret, table);
    let peer = nginx.as_ref().map(|nginx| {
        (0..options.paths)
            .for_each(|number| drop(nginx.serve(&format!("{}/{number}", number % 1000), &content(number))));
        let load = WrkLoad { pid: nginx.pid(), url: nginx.url(), script: Some(&theirs), ..ours.clone() };
        fill(&load);
        load
    });
    let loads: Vec<WrkLoad<'_>> = [ours.clone()].into_iter().chain(peer).collect();
    let mut micros = wrk::in_turn(&loads).into_iter();
    let (quiet, peer) = (micros.next().unwrap_or_default(), micros.next());
    let name = names[1].clone();
    table.add(ResultRow { name, unit: Unit::Micros, ours: quiet, peer, goal: Goal::Ratio(0.6) });
    measure_while_publishing(bench, "maven", &format!("{}, {PUBLISHES} publishes/s", names[1]), &ours, table);
    if table.selects(AT_CONNECTIONS) {
        WrkLoad { connections: 1000, ..ours.clone() }.run();
        let (name, ours) = (AT_CONNECTIONS.to_owned(), bench.server.rss() as f64 / MIB);
        // The goal is 250 MB.
        table.add(ResultRow { name, unit: Unit::Mebibytes, ours, peer: None, goal: Goal::AtMost(238.4) });
    }
}

const MIB: f64 = 1024.0 * 1024.0;

fn content(number: u32) -> Vec<u8> {
    payload::bytes(u64::from(number), 4096)
}

fn publish(options: &Options, bench: &BenchServer) {
    let publisher = Publisher::new(bench.server.packages(), &bench.secret);
    publish_all(WRITERS, options.paths, &publisher, |number| {
        (format!("/repositories/maven/com/set/a{number}/1.0/a{number}-1.0.jar"), content(number))
    });
}

/// Measures a load during publishes into the repository that it reads, and compares it with the
/// same load before and after.
fn measure_while_publishing(
    bench: &BenchServer,
    repository: &str,
    name: &str,
    load: &WrkLoad<'_>,
    table: &mut ResultTable,
) {
    let before = load.run().rate;
    let done = AtomicBool::new(false);
    let (busy, rate) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish_at_rate(bench, repository, &done));
        let busy = load.run();
        done.store(true, Ordering::SeqCst);
        (busy, publisher.join().expect("publishes"))
    });
    let quiet = f64::midpoint(before, load.run().rate);
    let row = |name: String, ours, peer, goal| ResultRow { name, unit: Unit::Rate, ours, peer, goal };
    table.add(row(name.to_owned(), busy.rate, Some(quiet), Goal::Ratio(0.8)));
    // The bound is slightly below the rate, because a publish that is still running at the end is
    // not counted.
    let least = f64::from(PUBLISHES) * 0.98;
    table.add(row(format!("{name}: publishes"), rate, None, Goal::AtLeast(least)));
}

/// Publishes at a constant rate until `done`. Returns the publishes per second.
fn publish_at_rate(bench: &BenchServer, repository: &str, done: &AtomicBool) -> f64 {
    let publisher = Publisher::new(bench.server.packages(), &bench.secret);
    let mut connection = publisher.connect();
    let (start, mut count) = (Instant::now(), 0_u32);
    while !done.load(Ordering::SeqCst) {
        match repository {
            "npm" => crate::bench_server::publish_npm(
                &bench.client,
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
