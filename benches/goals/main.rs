//! What the server is to reach, measured beside nginx or beside itself in one run, as one table at the end: each row a ratio, or a
//! figure with its bound. `just bench` runs it; `--help` says what can be made smaller or left out.
//!
//! Costs of reads are the server's CPU time for a request, which hardly moves with the machine: it runs on the first core, the load
//! (wrk) on the second, with 64 connections that show Basic credentials. nginx serves the same bytes from files, with the same
//! credentials, on the first core as well. What is missing on the machine is named, and its rows are left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot be run must stop loudly"
)]

mod footprint;
mod nginx;
mod options;
mod publishes;
mod reads;
#[path = "../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that make more")]
mod release;
mod table;
mod versions;
#[path = "../../plugins/python/tests/wheel.rs"]
mod wheel;
mod working_set;
mod world;
mod wrk;

use options::Options;
use table::Table;
use world::World;

fn main() {
    let options = Options::read();
    let mut table = Table::new(&options.only);
    if options.wants("start to the first 200 memory idle") {
        footprint::start(&options, &mut table);
    }
    if options.wants("kept anew group of five proxy Zipf paths publishes beside memory after reads connections jar packument") {
        let world = World::new();
        reads::measure(&options, &world, &mut table);
        footprint::after_reads(&world, &mut table);
        working_set::measure(&options, &world, &mut table);
    }
    if options.wants("memory transfer there and back") {
        footprint::transfer(&options, &mut table);
    }
    if options.wants("next packument index after a publish into") {
        versions::measure(&options, &mut table);
    }
    if options.wants("durable publishes writers") {
        publishes::measure(&options, &mut table);
    }
    table.print();
}
