//! Measures the goals of the server, and prints one table at the end. Each row is a ratio to nginx
//! or to another state of the server in the same run, or a figure with its bound. `just bench` runs
//! it; `--help` lists the parts that can be made smaller or left out.
//!
//! The cost of a read is the CPU time of the server for a request, which hardly depends on other
//! load of the machine. The server runs on the first core. The load (wrk) runs on the second core,
//! with 64 connections that send Basic credentials. nginx serves the same bytes from files, with
//! the same credentials, also on the first core. Programs that are not installed are reported, and
//! their rows are left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be run must stop loudly"
)]

mod bench_server;
mod footprint;
mod nginx;
mod options;
mod publishes;
mod reads;
#[path = "../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;
mod table;
mod versions;
#[path = "../../plugins/python/tests/wheel.rs"]
mod wheel;
mod working_set;
mod wrk;

use bench_server::BenchServer;
use options::Options;
use table::ResultTable;

fn main() {
    let options = Options::read();
    let mut table = ResultTable::new(&options.only);
    if options.selects("start to the first 200 memory idle") {
        footprint::start(&options, &mut table);
    }
    let of_reads = "cached no cache group of five proxy Zipf paths publishes/s memory at after reads connections \
        Maven metadata jar packument tarball index wheel manifest";
    if options.selects(of_reads) {
        let bench = BenchServer::new();
        reads::measure(&options, &bench, &mut table);
        // The memory after only a part of the reads would not be comparable.
        if options.only.is_empty() {
            footprint::after_reads(&bench, &mut table);
        }
        working_set::measure(&options, &bench, &mut table);
    }
    if options.selects("memory transfer in both directions") {
        footprint::transfer(&options, &mut table);
    }
    if options.selects("next packument index after a publish into") {
        versions::measure(&options, &mut table);
    }
    if options.selects("durable publishes writers") {
        publishes::measure(&options, &mut table);
    }
    table.print();
}
