//! `just chaos --minutes 60 --seed N`: repeats rounds of load and faults for that time, and reports
//! the results.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

use anyhow::bail;
use clap::Parser;
use packhouse_chaos::faults::Fault;
use packhouse_chaos::round::{Plan, RoundStage};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Load and faults over several servers, one PostgreSQL and one S3; checks what clients observed.
#[derive(Parser)]
struct Arguments {
    /// How long faults go on, in minutes.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Seed of the load and of the order of the faults; random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of servers; by default two for half of the time, then three.
    #[arg(long)]
    servers: Option<usize>,
    /// How long a fault lasts, in milliseconds.
    #[arg(long, default_value_t = 3_000)]
    hold_ms: u64,
    /// Only these faults, separated by commas; `list` prints their names.
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// File for the history, with one line for each operation.
    #[arg(long)]
    history: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.faults.iter().any(|name| name == "list") {
        Fault::ALL.iter().for_each(|fault| println!("{}", fault.name()));
        return Ok(());
    }
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs() % 1_000_000
    });
    let mut faults = Vec::new();
    for name in &arguments.faults {
        let Some(fault) = Fault::named(name) else { bail!("unknown fault {name:?}: see --faults list") };
        faults.push(fault);
    }
    if faults.is_empty() {
        faults = Fault::ALL.to_vec();
    }
    let sizes = arguments.servers.map_or_else(|| vec![2, 3], |servers| vec![servers]);
    let time = Duration::from_secs(arguments.minutes * 60) / sizes.len() as u32;
    let mut wrong = 0;
    for servers in sizes {
        eprintln!("seed {seed}, {servers} servers, {time:?}");
        let hold = Duration::from_millis(arguments.hold_ms);
        let plan = Plan { seed, servers, faults: faults.clone(), rounds: 0, time, hold, rolling: 2 };
        let mut stage = RoundStage::start(servers).map_err(anyhow::Error::msg)?;
        let report = stage.play(&plan, |_, _, _, _| ());
        println!("{}", report.text());
        if let Some(path) = &arguments.history {
            let lines: String = report.events.iter().map(|event| format!("{event}\n")).collect();
            std::fs::write(path.with_extension(format!("{servers}.txt")), lines)?;
        }
        eprint!("{}", report.logs);
        wrong += report.violations.len() + report.rolling.iter().map(|rolling| rolling.failed).sum::<usize>();
    }
    if wrong > 0 {
        bail!("{wrong} faults: repeat with --seed {seed}");
    }
    Ok(())
}
