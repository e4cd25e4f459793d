//! Duration of a start, and memory use: idle, during a large transfer, and after the reads.

use crate::bench_server::BenchServer;
use crate::options::Options;
use crate::table::{Goal, ResultRow, ResultTable, Unit};
use packhouse_benches::median;
use packhouse_tests::server::{free_port, program};
use packhouse_tests::{Client, MavenRepository, Request, Server, payload};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: f64 = 1024.0 * 1024.0;
/// Number of timed starts.
const STARTS: usize = 7;

fn memory(name: &str, bytes: u64, goal: f64) -> ResultRow {
    let ours = bytes as f64 / MIB;
    ResultRow { name: name.to_owned(), unit: Unit::Mebibytes, ours, peer: None, goal: Goal::AtMost(goal) }
}

/// Measures starts with existing data and cached compiled plugins, and the memory of an idle
/// server.
pub(crate) fn start(options: &Options, table: &mut ResultTable) {
    let data = tempfile::tempdir().expect("a folder");
    let mut server = Server::with().data(data.path()).start();
    server.kill9();
    if table.selects("start to the first 200") {
        let times = (0..STARTS).map(|_| first_answer(data.path())).collect();
        let name = "start to the first 200".to_owned();
        table.add(ResultRow {
            name,
            unit: Unit::Millis,
            ours: median(times),
            peer: None,
            goal: Goal::AtMost(50.0),
        });
    }
    if table.selects("memory, idle") {
        server.restart();
        std::thread::sleep(Duration::from_secs(options.settle));
        let name = format!("memory, idle for {} s, all plugins", options.settle);
        table.add(memory(&name, server.rss(), 40.0));
    }
}

/// Milliseconds from the start of the program to its first 200.
fn first_answer(data: &std::path::Path) -> f64 {
    let [packages, api] = [free_port(), free_port()];
    let mut command = Command::new(program());
    command.arg("serve").arg("--data").arg(data);
    command.args(["--packages-listen", &format!("127.0.0.1:{packages}")]);
    command.args(["--api-listen", &format!("127.0.0.1:{api}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, api)));
    let begun = Instant::now();
    let mut child = command.spawn().expect("starts");
    let ready = || client.try_send(Request::new("GET", "/readyz")).is_ok_and(|answer| answer.status == 200);
    while !ready() {
        assert!(child.try_wait().expect("waits").is_none(), "the server stopped");
        std::thread::sleep(Duration::from_micros(500));
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    let _ = child.kill();
    let _ = child.wait();
    took
}

/// Measures the memory of the server after the reads.
pub(crate) fn after_reads(bench: &BenchServer, table: &mut ResultTable) {
    table.add(memory("memory after the reads", bench.server.rss(), 160.0));
}

/// Uploads and downloads a large file on a server that does nothing else, and measures its peak
/// memory.
pub(crate) fn transfer(options: &Options, table: &mut ResultTable) {
    let name = format!("memory, transfer of {} MiB in both directions", options.transfer);
    if !table.selects(&name) {
        return;
    }
    let server = Server::start();
    let repository = MavenRepository::create(&server, "large");
    std::thread::sleep(Duration::from_secs(options.settle));
    let idle = server.rss();
    let path = repository.path("com/large/a/1.0/a-1.0.jar");
    let ((), most) = server.watched(|| {
        let mut source = payload::Blocks::new(1);
        let length = options.transfer << 20;
        repository.client.put_from(&path, &mut source, length).expect("is put").expect(201);
        repository.client.get_to(&path, &mut |_| ()).expect("is read").expect(200);
    });
    let goal = idle as f64 / MIB + 16.0;
    table.add(ResultRow { peer: Some(idle as f64 / MIB), ..memory(&name, most, goal.round()) });
}
